"""Compiled code proves what may be claimed of a mutant; what it cannot prove is not claimed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from gatecert.mutants.compile import compare_code, relevant_signatures
from gatecert.mutants.compile_pool import CompilePool, compile_pool
from gatecert.mutants.compile_protocol import FAILED, CompileRequest, Stop
from gatecert.mutants.discover import find_kernels, link_callees
from gatecert.mutants.plant import plant
from gatecert.mutants.records import CodeComparison, CodeDepth, CodeVerdict, Kernel, Signature
from gatecert.operators.records import Operator
from tests.mutants.kernels import replacer
from tests.mutants.packages import REPOSITORY
from tests.signals import heed_interrupts

_KERNELS = """\
import triton
import triton.language as tl

from shop.helpers import double


@triton.jit
def scale(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr, KIND: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    total = tl.sum(x, axis=0)
    y = x + double(x) + 1.5
    tl.store(y_ptr + cols, y / total, mask=cols < n)
"""
_HELPERS = """\
import triton
import triton.language as tl


@triton.jit
def double(x):
    return x * 2.0
"""


class _Shop:
    """The package on disk, its kernels, and comparisons of what is planted in it."""

    def __init__(self, folder: Path, pool: CompilePool) -> None:
        self.folder = folder
        self.pool = pool
        (folder / "shop").mkdir()
        self.texts: dict[str, str] = {}
        self.kernels: list[Kernel] = []
        for name, text in (("kernels", _KERNELS), ("helpers", _HELPERS), ("__init__", "")):
            path = folder / "shop" / f"{name}.py"
            path.write_text(text)
            self.texts[str(path)] = text
            self.kernels += find_kernels(f"shop.{name}", str(path), text)[0]
        self.kernels = link_callees(self.kernels)

    def compare(
        self,
        *operators: Operator,
        kernel: str = "shop.kernels:scale",
        signatures: tuple[Signature, ...] | None = None,
        timeout_s: float = 60.0,
        depth: CodeDepth = CodeDepth.OPTIMISED_IR,
        codes: Path | None = None,
    ) -> list[CodeComparison]:
        [found] = [k for k in self.kernels if k.name == kernel]
        mutants = plant("shop", found, self.texts[found.path], operators)
        assert mutants
        with compile_pool(1, codes) if codes else nullcontext(self.pool) as pool:
            return compare_code(
                mutants,
                pool,
                kernels=self.kernels,
                texts=self.texts,
                signatures=_SIGNATURES if signatures is None else signatures,
                import_paths=[str(self.folder)],
                timeout_s=timeout_s,
                depth=depth,
            )


def _signature(dtype: str, block: int = 64, kind: str = "dtype:fp32") -> Signature:
    return Signature(
        kernel="shop.kernels:scale",
        types=(("x_ptr", f"*{dtype}"), ("y_ptr", f"*{dtype}"), ("n", "i32"), ("factor", "fp32")),
        constexprs=(("BLOCK", block), ("KIND", kind)),
    )


_SIGNATURES = (_signature("fp32"), _signature("fp16"), _signature("bf16"))


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    """A warm server: each request is answered by a fork of its own."""
    with compile_pool(1) as pool:
        yield pool


@pytest.fixture
def shop(tmp_path: Path, pool: CompilePool) -> _Shop:
    return _Shop(tmp_path, pool)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    y = x", "    # why\n    y = x"),
        ("total = tl.sum(x, axis=0)", "total = tl.sum(x, axis=-1)"),
        ("y = x + double(x) + 1.5", "y = x + double(x) + 3.0 / 2.0"),
    ],
)
def test_the_same_code_for_every_signature_is_equivalent(shop: _Shop, old: str, new: str) -> None:
    [said] = shop.compare(replacer("same", old, new))
    assert said.verdict is CodeVerdict.EQUIVALENT
    assert said.signatures_compiled == 3


def test_nothing_is_claimed_where_an_argument_gets_another_type(shop: _Shop) -> None:
    """Compiled by the original's types, it would be the same code; no launch asks for that."""
    [said] = shop.compare(replacer("wide", "ptr, n, factor", "ptr, n: tl.int64, factor"))
    assert said.verdict is CodeVerdict.UNKNOWN
    assert "types an argument" in said.detail


def test_a_renamed_local_is_equivalent(shop: _Shop) -> None:
    body = _KERNELS[_KERNELS.index("    total") : _KERNELS.index("mask=cols < n)\n") + 16]
    [said] = shop.compare(replacer("rename", body, body.replace("total", "denominator")))
    assert said.verdict is CodeVerdict.EQUIVALENT


def test_machine_code_proves_what_the_ir_cannot(shop: _Shop) -> None:
    commuted = replacer("commute", "x + double(x) + 1.5", "double(x) + x + 1.5")
    [shallow] = shop.compare(commuted)
    [deep] = shop.compare(commuted, depth=CodeDepth.MACHINE_CODE)
    assert shallow.verdict is CodeVerdict.VIABLE
    assert deep.verdict is CodeVerdict.EQUIVALENT


@pytest.mark.parametrize("depth", CodeDepth)
def test_known_codes_are_kept_by_content_and_change_no_answer(
    shop: _Shop, tmp_path: Path, depth: CodeDepth
) -> None:
    same = replacer("same", "    y = x", "    # why\n    y = x")
    operators = (replacer("const", "1.5", "2.5"), same)
    first = shop.compare(*operators, depth=depth, codes=tmp_path / "codes")
    kept = sorted(path.name for path in (tmp_path / "codes").rglob("*") if path.is_file())
    again = shop.compare(*operators, depth=depth, codes=tmp_path / "codes")
    assert [said.verdict for said in first] == [CodeVerdict.VIABLE, CodeVerdict.EQUIVALENT]
    assert [said.verdict for said in again] == [said.verdict for said in first]
    assert len(kept) == 4  # three signatures of the original, one of the mutant that differs
    assert kept == sorted(p.name for p in (tmp_path / "codes").rglob("*") if p.is_file())


def test_other_code_is_viable_after_one_signature(shop: _Shop) -> None:
    [said] = shop.compare(replacer("const", "1.5", "2.5"))
    assert said.verdict is CodeVerdict.VIABLE
    assert said.signatures_compiled == 1
    assert said.seconds > 0


def test_code_that_differs_for_some_signature_only_is_viable(shop: _Shop) -> None:
    cast = replacer("cast", ".to(tl.float32)", "")
    [narrow] = shop.compare(cast, signatures=(_signature("fp32"),))
    [wide] = shop.compare(cast)
    assert narrow.verdict is CodeVerdict.EQUIVALENT
    assert wide.verdict is CodeVerdict.VIABLE


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("y_ptr + cols", "y_ptr * cols", "IncompatibleTypeErrorImpl: invalid operands"),
        ("tl.sum(x", "tl.summ(x", "AttributeError"),
    ],
)
def test_what_compiles_for_no_signature_is_unviable_and_says_why(
    shop: _Shop, old: str, new: str, says: str
) -> None:
    [said] = shop.compare(replacer("broken", old, new))
    assert said.verdict is CodeVerdict.UNVIABLE
    assert said.signatures_compiled == 3
    assert says in said.detail


def test_what_compiles_for_some_signatures_is_viable(shop: _Shop) -> None:
    """A static assertion on the block size fails for one signature of two."""
    fails_at_64 = replacer("assert", "    total", "    tl.static_assert(BLOCK != 64)\n    total")
    both = (_signature("fp32", 64), _signature("fp32", 128))
    other_too = replacer("both", "+ 1.5", "+ 2.5\n    tl.static_assert(BLOCK != 64)")
    fails, said = shop.compare(fails_at_64, other_too, signatures=both)
    assert said.verdict is CodeVerdict.VIABLE
    assert "some signatures only" in said.detail
    assert fails.verdict is CodeVerdict.UNVIABLE
    assert "only where its code is the original's" in fails.detail


def test_what_fails_to_compile_after_agreeing_at_first_is_unviable(shop: _Shop) -> None:
    both = (_signature("fp32", 64), _signature("fp32", 128), _signature("fp32", 256))
    fails_at_128 = replacer("assert", "    total", "    tl.static_assert(BLOCK != 128)\n    total")
    [said] = shop.compare(fails_at_128, signatures=both)
    assert said.verdict is CodeVerdict.UNVIABLE
    assert "only where its code is the original's" in said.detail


@pytest.mark.parametrize(
    ("depth", "spelling"),
    [
        (CodeDepth.OPTIMISED_IR, "double(x * 1.0) + x * 0 if False else x + double(x)"),
        (CodeDepth.MACHINE_CODE, "double(x) + x"),
    ],
)
def test_a_second_spelling_of_a_bug_is_a_duplicate_of_the_first(
    shop: _Shop, depth: CodeDepth, spelling: str
) -> None:
    first, second, other = shop.compare(
        replacer("one", "x + double(x) + 1.5", "x + double(x)"),
        replacer("two", "x + double(x) + 1.5", spelling),
        replacer("three", "x + double(x) + 1.5", "x"),
        depth=depth,
    )
    assert {said.depth for said in (first, second, other)} == {depth}
    assert (first.verdict, second.verdict) == (CodeVerdict.VIABLE, CodeVerdict.DUPLICATE)
    assert second.duplicate_of == first.mutant
    assert other.verdict is CodeVerdict.VIABLE


def test_duplicates_on_the_first_signature_alone_are_no_duplicates(shop: _Shop) -> None:
    one = replacer("one", "+ 1.5", "+ (2.5 if BLOCK == 64 else 3.5)")
    two = replacer("two", "+ 1.5", "+ (2.5 if BLOCK == 64 else 4.5)")
    both = (_signature("fp32", 64), _signature("fp32", 128))
    said = shop.compare(one, two, signatures=both)
    assert [c.verdict for c in said] == [CodeVerdict.VIABLE, CodeVerdict.VIABLE]
    assert [c.signatures_compiled for c in said] == [2, 2]


def test_a_mutated_device_function_is_compiled_in_its_callers(shop: _Shop) -> None:
    changed, same = shop.compare(
        replacer("const", "2.0", "3.0"), replacer("order", "x * 2.0", "2.0 * x"),
        kernel="shop.helpers:double",
    )  # fmt: skip
    assert changed.verdict is CodeVerdict.VIABLE
    assert same.verdict is CodeVerdict.EQUIVALENT


def test_without_a_launch_nothing_is_claimed(shop: _Shop) -> None:
    [said] = shop.compare(replacer("const", "1.5", "2.5"), signatures=())
    assert (said.verdict, said.detail) == (CodeVerdict.UNKNOWN, "no launch of it was seen")


def test_where_the_original_does_not_compile_nothing_is_claimed(shop: _Shop) -> None:
    wrong = Signature("shop.kernels:scale", (("x_ptr", "*fp32"), ("y_ptr", "i32"), ("n", "i32"),
                      ("factor", "fp32")), (("BLOCK", 64), ("KIND", None)))  # fmt: skip
    [said] = shop.compare(replacer("const", "1.5", "2.5"), signatures=(wrong,))
    assert said.verdict is CodeVerdict.UNKNOWN
    assert said.detail.startswith("the original does not compile: ")


def test_a_compiler_that_takes_too_long_is_unknown(shop: _Shop) -> None:
    long = replacer("slow", "    total", "    for i in tl.static_range(100000): x += i\n    total")
    [said] = shop.compare(long, timeout_s=2.0)
    assert said.verdict is CodeVerdict.UNKNOWN
    assert "did not end within 2 s" in said.detail


def test_an_overlay_that_is_never_imported_proves_nothing(shop: _Shop) -> None:
    request = CompileRequest(
        {str(shop.folder / "elsewhere.py"): ""},
        (_signature("fp32"),),
        Stop.NEVER,
        60.0,
        CodeDepth.OPTIMISED_IR,
        import_paths=(str(shop.folder),),
    )
    [reply] = shop.pool.map([request])
    assert reply.hashes == ()
    assert "never imported" in reply.broken


def test_a_text_that_does_not_import_fails_for_every_signature(shop: _Shop) -> None:
    path = str(shop.folder / "shop" / "kernels.py")
    request = CompileRequest(
        {path: "import nowhere"}, _SIGNATURES, Stop.NEVER, 60.0, CodeDepth.OPTIMISED_IR,
        import_paths=(str(shop.folder),),
    )  # fmt: skip
    [reply] = shop.pool.map([request])
    assert reply.hashes == (FAILED,) * 3
    assert reply.error == "does not import: ModuleNotFoundError: No module named 'nowhere'"


def test_signatures_with_16_bit_buffers_come_first_and_small_blocks_before_large() -> None:
    mutated = plant("s", find_kernels("shop.kernels", "k.py", _KERNELS)[0][0], _KERNELS,
                    [replacer("const", "1.5", "2.5")])[0]  # fmt: skip
    given = [_signature("fp32"), _signature("bf16", 128), _signature("bf16", 64)]
    elsewhere = Signature("shop.kernels:other", (), ())
    handed = Signature("shop.kernels:other", (), (("F", "fn:shop.kernels:scale"),))
    found = relevant_signatures(mutated, [*given, elsewhere, handed, handed], {})
    assert found == (given[2], given[1], handed, given[0])


def test_results_are_told_one_by_one_and_come_in_order(shop: _Shop) -> None:
    kernel = shop.kernels[0]
    operators = [replacer("a", "1.5", "2.5"), replacer("b", "x, axis=0", "x, axis=-1")]
    mutants = plant("shop", kernel, shop.texts[kernel.path], operators)
    told: list[str] = []
    with compile_pool(2) as pool:
        said = compare_code(
            mutants, pool, kernels=shop.kernels, texts=shop.texts, signatures=_SIGNATURES,
            import_paths=[str(shop.folder)], on_result=lambda c: told.append(c.mutant),
        )  # fmt: skip
    assert [c.mutant for c in said] == [m.id for m in mutants]
    assert sorted(told) == sorted(m.id for m in mutants)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which processes are left")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_when_the_comparison_is_interrupted(
    tmp_path: Path, ending: signal.Signals
) -> None:
    marker = str(tmp_path)
    script = (
        "import time\n"
        "from gatecert.mutants.compile_pool import compile_pool\n"
        "with compile_pool(2):\n"
        "    print('started', flush=True)\n"
        "    time.sleep(60)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=heed_interrupts,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    assert _processes_with(marker) >= 2
    os.kill(process.pid, ending)
    process.wait(timeout=30)
    process.stdout.close()
    deadline = time.monotonic() + 20
    while _processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _processes_with(marker) == 0
    if ending is signal.SIGINT:
        assert not list(tmp_path.glob("gatecert-compile-*"))


def _processes_with(folder: str) -> int:
    """Compile servers whose private cache lies below the folder."""
    found = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            server = b"gatecert.mutants.compile_server" in (path / "cmdline").read_bytes()
            found += (
                server and f"TRITON_CACHE_DIR={folder}".encode() in (path / "environ").read_bytes()
            )
        except OSError:
            continue
    return found
