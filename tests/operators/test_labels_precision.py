"""Labels of dropped-upcast, reasoned out by hand from Triton's rules of promotion.

A mutant is observable where more than the output's own rounding is lost, and is not planted
where Triton would refuse it. Both are held against the compiler itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.operators.records import ObservableBy, Reveal
from gatecert.operators.registry import get_operator
from tests.operators import arithmetic
from tests.operators import sample_kernels as samples

HALF = (Reveal.HALF_PRECISION,)
LONG = (Reveal.HALF_PRECISION, Reveal.LONG)
BLOCKS = (Reveal.HALF_PRECISION, Reveal.SEVERAL_BLOCKS)
NOTHING: tuple[Reveal, ...] = ()
"""No run shows it: not observable."""

NAME = "dropped-upcast"
PARAMETERS = "x_ptr, w_ptr, y_ptr, N, scale, B: tl.constexpr, C: tl.constexpr"
COLS = "cols = tl.arange(0, B)"
LOAD = "x = tl.load(x_ptr + cols)"
WIDE = "x = tl.load(x_ptr + cols).to(tl.float32)"
STORE = "tl.store(y_ptr + cols, {})"


def kernel(*body: str) -> str:
    return arithmetic.kernel(COLS, *body, parameters=PARAMETERS)


def reveals(source: str, variant: str = "") -> list[tuple[Reveal, ...]]:
    """What reveals each mutant of a variant; the labels agree with one another."""
    sites = [site for site, _ in arithmetic.sites(NAME, source) if site.variant == variant]
    for site in sites:
        assert site.observable_by == ((ObservableBy.VALUES,) if site.reveal else ())
    return [site.reveal for site in sites]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # x * x is a product in 16 bits, and what follows is not.
        ((WIDE, STORE.format("x * x / N")), HALF),
        # A maximum of 16-bit numbers is a float32, and so is all that meets it.
        ((WIDE, STORE.format("tl.exp(x - tl.max(x))")), NOTHING),
        # A quotient is a float32.
        ((WIDE, STORE.format("tl.exp(x / N)")), NOTHING),
        # An assigned number is a float32 ...
        (("k = 0.3", WIDE, STORE.format("tl.exp2(x * k)")), NOTHING),
        # ... and one that is not assigned, or is a constant, takes on the other's format.
        ((WIDE, STORE.format("x * 0.3 / N")), HALF),
        (("k: tl.constexpr = 0.3", WIDE, STORE.format("x * k / N")), HALF),
        ((WIDE, STORE.format("x * C / N")), HALF),
        # What a parameter is, its kernel does not say.
        ((WIDE, STORE.format("x * scale / N")), HALF),
        # Choosing, comparing, turning a sign lose nothing.
        ((WIDE, STORE.format("tl.where(x > 0.0, -x, tl.abs(x)) / N")), NOTHING),
        ((WIDE, STORE.format('tl.where(x > 0.0, x, -float("inf")) / N')), NOTHING),
        ((WIDE, STORE.format('tl.maximum(x, float("-inf")) / N')), NOTHING),
        # But a number that 16 bits do not hold is another one there.
        ((WIDE, STORE.format("tl.where(x > 0.3, 1.0, 0.0)")), HALF),
        ((WIDE, STORE.format("tl.maximum(x, 1e-12) / N")), HALF),
        # Only the sum is in 16 bits.
        ((WIDE, STORE.format("x - tl.sum(x) / N")), LONG),
        ((WIDE, STORE.format("tl.cumsum(x, 0)")), LONG),
        # Rounded once, and once more to the same format: that changes nothing.
        ((WIDE, STORE.format("(x + 1.0).to(x_ptr.dtype.element_ty) / N")), NOTHING),
        ((WIDE, STORE.format("(x + 1.0 + x).to(x_ptr.dtype.element_ty) / N")), HALF),
        # Unless the output is wider.
        ((WIDE, STORE.format("x + 1.0")), HALF),
        # Another operand is cast, too.
        (("w = tl.load(w_ptr + cols).to(tl.float32)", LOAD, STORE.format("w * x / N")), HALF),
        # Cast to the type of what is narrower now.
        ((WIDE, STORE.format("(cols * 0.1).to(x.dtype) / N")), HALF),
    ],
)
def test_a_dropped_cast_shows_where_16_bits_lose_more_than_the_output_does(
    lines: tuple[str, ...], expected: tuple[Reveal, ...]
) -> None:
    assert reveals(kernel(*lines)) == [expected]


NEEDED = (
    # Functions of float32 only.
    (WIDE, STORE.format("tl.exp(x)")),
    (WIDE, STORE.format("tl.sqrt(tl.sum(x * x))")),
    # A contraction of two formats.
    (
        "rows = tl.arange(0, B)[:, None] * B + cols[None, :]",
        "x = tl.load(x_ptr + rows).to(tl.float32)",
        "w = tl.exp(x)",
        "tl.store(y_ptr + rows, tl.dot(w, tl.trans(x) * 0.3))",
    ),
    # A name keeps its type in a loop and in both arms of a branch.
    (WIDE, "for i in range(N):", "    x = x / 2.0", STORE.format("x * 0.3")),
    (WIDE, "if N > 3:", "    x = x / 2.0", STORE.format("x * 0.3")),
    (WIDE, STORE.format("x * 0.3 if N > 3 else x / 2.0")),
)


@pytest.mark.parametrize("lines", NEEDED)
def test_a_cast_without_which_the_kernel_does_not_compile_is_no_site(
    lines: tuple[str, ...],
) -> None:
    assert arithmetic.sites(NAME, kernel(*lines)) == []


def test_the_compiler_agrees_about_casts_that_it_needs_and_mutants_that_it_takes(
    tmp_path: Path,
) -> None:
    needed = [kernel(*lines) for lines in NEEDED]
    bare = [source.replace(".to(tl.float32)", "") for source in needed]
    examples = get_operator(NAME).applies
    planted = [text for example in examples for text in (example.source, *example.mutants)]
    refused = compiler_refuses(tmp_path, *planted, *needed, *bare)
    assert refused == [False] * (len(planted) + len(needed)) + [True] * len(bare)


@pytest.mark.parametrize(
    "lines",
    [
        # Integers, truth values and parameters are no 16-bit numbers.
        ("x = (cols > 3).to(tl.float32)", STORE.format("x * 0.3")),
        ("n = N.to(tl.float32)", STORE.format("n * 0.3 + cols")),
        # What is a float32 already.
        ("x = tl.load(x_ptr + cols) / 3.0", STORE.format("x.to(tl.float32) * 0.3")),
        # Bits, not a number.
        ("x = tl.load(x_ptr + cols)", STORE.format("x.to(tl.float32, bitcast=True)")),
        # What another module makes of it is not known.
        ("from_elsewhere(tl.load(x_ptr + cols).to(tl.float32))",),
    ],
)
def test_a_cast_of_what_is_no_16_bit_number_is_no_site(lines: tuple[str, ...]) -> None:
    assert arithmetic.sites(NAME, kernel(*lines)) == []


def test_a_branch_on_constants_is_looked_at_by_itself() -> None:
    lines = (LOAD, "if C == 1:", "    x = x.to(tl.float32)", STORE.format("x * x / N"))
    assert reveals(kernel(*lines)) == [HALF]


def test_a_launch_says_that_a_parameter_is_a_float() -> None:
    source = kernel(WIDE, STORE.format("tl.where(x > 0.0, x, x * scale)"))
    launcher = "def launch(x, w, y, {}):\n    k[(1,)](x, w, y, 8, {}, B=16, C=1)\n\n\n"
    for parameter, passed, expected in (
        ("scale: float", "scale", NOTHING),
        ("scale=0.01", "scale", NOTHING),
        ("n", "1.0 / n", NOTHING),
        ("scale", "scale", HALF),
        ("scale: int", "-scale", HALF),
    ):
        assert reveals(launcher.format(parameter, passed) + source) == [expected]


def test_a_function_of_the_module_is_looked_into() -> None:
    helper = "@triton.jit\ndef h(x):\n    return {}\n\n\n"
    source = kernel(WIDE, STORE.format("h(x)"))
    assert reveals(helper.format("x * x / 3.0") + source) == [HALF]
    assert reveals(helper.format("x / 3.0") + source) == [NOTHING]
    assert reveals(helper.format("tl.exp(x)") + source) == []


def test_a_cast_in_a_function_is_seen_through_its_callers() -> None:
    caller = kernel(LOAD, STORE.format("{}")) + "\n\n"
    helper = "@triton.jit\ndef h(x):\n    return x.to(tl.float32)\n"
    assert reveals(caller.format("h(x) * h(x) / N") + helper) == [HALF]
    assert reveals(caller.format("h(x) / N") + helper) == [NOTHING]
    assert reveals(caller.format("tl.exp(h(x))") + helper) == []
    assert reveals(caller.format("h(x / 2.0) * 0.3") + helper) == []


SUM = ("total = tl.zeros((B,), tl.float32)", "for i in range(N):")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # One turn is a number that 16 bits hold, or one that is rounded to them anyway.
        ((*SUM, "    total += tl.load(x_ptr + i + cols)", STORE.format("total / N")), [BLOCKS]),
        (
            (
                *SUM,
                "    x = tl.load(x_ptr + i + cols).to(tl.float32)",
                "    total += x / 3.0",
                STORE.format("total.to(y_ptr.dtype.element_ty)"),
            ),
            [BLOCKS],
        ),
        # One turn is rounded, and that shows.
        (
            (
                *SUM,
                "    x = tl.load(x_ptr + i + cols).to(tl.float32)",
                "    total += x / 3.0",
                STORE.format("total / N"),
            ),
            [HALF],
        ),
        # A running maximum is no sum, and a sum of numbers has no format to take.
        ((*SUM, "    total = tl.maximum(total, i)", STORE.format("total")), []),
        ((*SUM, "    total += 0.1", STORE.format("total")), []),
        # A second name would need to change its type, too.
        (
            (
                *SUM,
                "    total += tl.load(x_ptr + i + cols) * 0.3",
                "    total = tl.sqrt(total)",
                STORE.format("total"),
            ),
            [],
        ),
    ],
)
def test_an_accumulator_shows_by_the_turn_that_loses_something(
    lines: tuple[str, ...], expected: list[tuple[Reveal, ...]]
) -> None:
    assert reveals(kernel(*lines), "accumulator") == expected


def compiler_refuses(folder: Path, *sources: str) -> list[bool]:
    """Whether kernels do not compile with buffers of one of the two 16-bit formats."""
    for position, source in enumerate(sources):
        (folder / f"case_{position}.py").write_text(samples.HEADER + source, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(folder / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(folder), str(len(sources))],
        env=environment, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    found: list[bool] = json.loads(done.stdout.splitlines()[-1])
    return found


COMPILE = """
import importlib, json, sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

folder, count = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, folder)
refused = [False] * count
for position in range(count):
    module = importlib.import_module(f"case_{position}")
    kernel = [v for v in vars(module).values() if isinstance(v, JITFunction)][-1]
    for element in ("fp16", "bf16"):
        types, constants = {}, {}
        for param in kernel.params:
            if param.is_constexpr:
                types[param.name], constants[param.name] = "constexpr", 16
            elif param.name.endswith("_ptr"):
                types[param.name] = "*" + element
            else:
                types[param.name] = "fp32" if param.name == "scale" else "i32"
        try:
            compile(ASTSource(kernel, types, constants), target=GPUTarget("cuda", 90, 32))
        except CompilationError:
            refused[position] = True
print(json.dumps(refused))
"""
