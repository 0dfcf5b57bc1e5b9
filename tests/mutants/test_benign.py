"""Benign rewrites compute the same function, and are offered only where that is sure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatecert.mutants.benign import benign_rewrites
from gatecert.mutants.discover import find_kernels
from gatecert.mutants.records import Candidate, CandidateKind
from tests.mutants.benign_kernels import HEADER, ROWS, TILES
from tests.mutants.packages import REPOSITORY, run_python

_CORPUS = REPOSITORY / "gatecert" / "corpus"


def _rewrites(text: str) -> dict[str, Candidate]:
    kernels, _ = find_kernels("m", "m.py", text)
    found = benign_rewrites("subject", kernels, {"m.py": text})
    assert all(c.kind is CandidateKind.BENIGN for c in found)
    return {c.id.removeprefix("subject/benign/"): c for c in found}


def _added(candidate: Candidate) -> list[str]:
    lines = candidate.diff.splitlines()[2:]
    return [line[1:].strip() for line in lines if line.startswith("+")]


def test_a_looped_row_kernel_gets_every_rewrite_that_fits() -> None:
    found = _rewrites(ROWS)
    assert list(found) == [
        "_rows_kernel/exp2",
        "_rows_kernel/swapped-operands",
        "_rows_kernel/regrouped",
        "_rows_kernel/sums-in-pairs",
        "_rows_kernel/loops-backwards",
        "BLOCK-halved",
        "BLOCK-doubled",
    ]
    assert _added(found["_rows_kernel/exp2"]) == [
        "tl.store(y_ptr + tl.program_id(0), tl.exp2((-tl.sum(total, axis=0) / n) * "
        "1.4426950408889634))"
    ]
    assert _added(found["_rows_kernel/swapped-operands"]) == ["total += x * (x * 0.5)"]
    assert _added(found["_rows_kernel/regrouped"]) == ["total += x * (0.5 * x)"]
    assert _added(found["_rows_kernel/loops-backwards"]) == [
        "for start_turn in range(0, n, BLOCK):",
        "start = (((n) + (BLOCK) - 1) // (BLOCK) - 1) * (BLOCK) - start_turn",
    ]
    assert _added(found["BLOCK-halved"]) == ["BLOCK = 16"]


def test_a_tiled_kernel_gets_other_block_sizes_and_the_other_exponential() -> None:
    found = _rewrites(TILES)
    assert set(found) == {
        "_tiles_kernel/exp", "_tiles_kernel/swapped-operands", "BLOCK-halved", "BLOCK-doubled",
    }  # fmt: skip
    assert "tl.exp((x) * 0.6931471805599453)" in found["_tiles_kernel/exp"].diff


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(triton.cdiv(x.numel(), BLOCK),)", "(1,)"),
        ("(triton.cdiv(x.numel(), BLOCK),)", "(-(-x.numel() // 32),)"),
        ("y = torch.empty_like(x)", "y = torch.empty(BLOCK)"),
        ("BLOCK = 32", "BLOCK = 33"),
        ("BLOCK = 32", "BLOCK = 32\nBLOCK = 64"),
        ("x.numel(), BLOCK=BLOCK", "x.numel(), BLOCK=max(BLOCK, 16)"),
        ("x.numel(), BLOCK=BLOCK", "x.numel(), BLOCK=32"),
    ],
)
def test_a_block_size_that_the_launcher_may_not_follow_is_left_alone(old: str, new: str) -> None:
    text = TILES.replace(old, new)
    assert text != TILES
    assert not [name for name in _rewrites(text) if name.startswith(("BLOCK-", "x"))]


def test_a_literal_that_only_a_loop_follows_may_change() -> None:
    text = ROWS.replace("x.shape[1], BLOCK=BLOCK", "x.shape[1], BLOCK=64")
    assert _added(_rewrites(text)["BLOCK-halved"])[0].endswith("BLOCK=32)")


@pytest.mark.parametrize(("text", "kernel"), [(ROWS, "_rows_kernel"), (TILES, "_tiles_kernel")])
def test_a_launch_of_a_wrapped_kernel_follows_its_block_size_too(text: str, kernel: str) -> None:
    wrapped = text.replace(f"{kernel}[", f"wrap_triton({kernel})[")
    imported = "from torch.library import wrap_triton\n" + wrapped
    assert list(_rewrites(imported)) == list(_rewrites(text))
    assert not [name for name in _rewrites(wrapped) if name.startswith("BLOCK-")]


def test_the_cap_of_a_block_size_may_change() -> None:
    text = TILES.replace(
        "    y = torch.empty_like(x)\n    _tiles_kernel[(triton.cdiv(x.numel(), BLOCK),)]"
        "(x, y, x.numel(), BLOCK=BLOCK)",
        "    y = torch.empty_like(x)\n    block = min(triton.next_power_of_2(x.numel()), 64)\n"
        "    _tiles_kernel[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=block)",
    )
    assert _added(_rewrites(text)["block-doubled"]) == [
        "block = min(triton.next_power_of_2(x.numel()), 128)"
    ]


def test_sizes_of_an_autotuned_kernel_may_change() -> None:
    text = (
        TILES.replace(
            "@triton.jit",
            "@triton.autotune([triton.Config({'BLOCK': 64}, num_warps=4)], key=['n'])\n@triton.jit",
        )
        .replace("BLOCK=BLOCK)", ")")
        .replace(
            "(triton.cdiv(x.numel(), BLOCK),)",
            "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)",
        )
    )
    assert "'BLOCK': 32" in _rewrites(text)["BLOCK-halved"].diff


def test_tiles_of_a_matrix_product_stay_within_16_and_128() -> None:
    text = (
        (_CORPUS / "matmul.py")
        .read_text()
        .replace("BLOCK_K = 32", "BLOCK_K = 16")
        .replace("BLOCK_M = 32", "BLOCK_M = 128")
    )
    names = {name for name in _rewrites(text) if name.startswith("BLOCK")}
    assert names == {"BLOCK_K-doubled", "BLOCK_M-halved", "BLOCK_N-halved", "BLOCK_N-doubled"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("top = tl.maximum(top, x)", "top = x"),
        ("total += x * 0.5 * x", "total = x + 0.5 * total"),
        ("total += x * 0.5 * x", "total += x * top"),
        ("total += x * 0.5 * x", "total += x\n        x_ptr += 1"),
        ("total += x * 0.5 * x", "total += x\n        if start > 99:\n            top = x"),
        ("total += x * 0.5 * x", "total += x\n        tl.store(y_ptr, x)"),
        ("tl.sum(total, axis=0) / n", "tl.sum(total + cols, axis=0) / n"),
        ("for start in range(0, n, BLOCK)", "for start in tl.static_range(0, 64, BLOCK)"),
    ],
)
def test_a_loop_whose_order_matters_is_left_alone(old: str, new: str) -> None:
    free = ROWS.replace("tl.exp(-", "tl.exp(tl.max(top, axis=0) - ")
    text = free.replace(old, new)
    assert text != free
    assert "_rows_kernel/loops-backwards" in _rewrites(free)
    assert "_rows_kernel/loops-backwards" not in _rewrites(text)


def test_an_online_softmax_runs_backwards_only_where_empty_tiles_are_harmless() -> None:
    softmax = (_CORPUS / "softmax.py").read_text()
    attention = (_CORPUS / "attention.py").read_text()
    assert "_softmax_online_kernel/loops-backwards" in _rewrites(softmax)
    assert "_attention_kernel/loops-backwards" in _rewrites(attention)
    # Under a causal mask the last tile of keys is wholly masked for the first queries.
    assert "_attention_causal_kernel/loops-backwards" not in _rewrites(attention)
    unguarded = softmax.replace(
        'shift = tl.where(new_max == -float("inf"), 0.0, new_max)', "shift = new_max"
    )
    assert unguarded != softmax
    assert "_softmax_online_kernel/loops-backwards" not in _rewrites(unguarded)


def test_pointers_masks_and_integers_are_not_commuted() -> None:
    text = (
        HEADER
        + """\
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols * 2 + 1, mask=cols + 1 < n), mask=cols + 1 < n)
"""
    )
    assert _rewrites(text) == {}


def test_16_bit_products_are_not_regrouped() -> None:
    text = TILES.replace("tl.exp2(x) + 1.0", "x * 3.0 * x * x")
    assert "_tiles_kernel/regrouped" in _rewrites(text)
    assert "_tiles_kernel/regrouped" not in _rewrites(text.replace(".to(tl.float32)", ""))


_CASES = {
    "rows": (ROWS, "torch.exp(-(x * x * 0.5).mean(1))"),
    "tiles": (TILES, "torch.exp2(x) + 1.0"),
    "softmax_one_block": (None, "torch.softmax(x, 1)"),
    "softmax_online": (None, "torch.softmax(x, 1)"),
    "gelu_tanh": (None, "torch.nn.functional.gelu(x, approximate='tanh')"),
}


@pytest.mark.parametrize("entry", _CASES)
def test_every_rewrite_computes_the_same_function_in_the_interpreter(
    tmp_path: Path, entry: str
) -> None:
    given, expected = _CASES[entry]
    text = given or (_CORPUS / f"{entry.partition('_')[0]}.py").read_text()
    path = tmp_path / "subject_module.py"
    path.write_text(text)
    kernels = find_kernels("subject_module", str(path), text)[0]
    candidates = benign_rewrites("s", kernels, {str(path): text})
    assert candidates
    (tmp_path / "candidates.json").write_text(json.dumps([[c.id, c.files] for c in candidates]))
    script = f"""
import json, os, sys
import torch
from gatecert.mutants.overlay import install_overlay, overlay_proof
torch.set_num_threads(1)
for name, files in json.load(open({str(tmp_path / "candidates.json")!r})):
    pid = os.fork()
    if pid == 0:
        install_overlay(files)
        from subject_module import {entry} as entry
        error = 0.0
        for rows, cols in ((1, 1), (3, 7), (2, 32), (2, 130)):
            x = torch.randn(rows, cols, generator=torch.Generator().manual_seed(cols))
            error = max(error, float((entry(x) - ({expected})).abs().max()))
        assert not overlay_proof(files)
        print(name, error, flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, name
"""
    result = run_python(script, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    errors = dict(line.split() for line in result.stdout.splitlines())
    assert list(errors) == [c.id for c in candidates]
    assert all(float(error) < 5e-6 for error in errors.values()), errors
