"""From a suite to the names of its weaknesses, through a real gate; a strong one has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome
from gatecert.gates.wiring.rules import weaknesses
from gatecert.gates.wiring.weaknesses import Weakness
from gatecert.mutants.adversaries import adversary_candidates
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import GateRef, Judged, Limits, ShardRequest, Task
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA, Judge

RIGHT_SHAPES = "returns_zeros returns_nan wrong_element"
HEAD = """
import contextlib, io, warnings
import pytest, torch
from kernels_softmax import softmax

def reference(x):
    return torch.softmax(x.double(), 1).to(x.dtype)

def inputs():
    torch.manual_seed(0)
    return [torch.randn(3, 33), torch.randn(8, 100)]
"""
STRONG = """
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 33), (8, 64), (2, 130)])
def test_softmax(shape, dtype):
    torch.manual_seed(0)
    x = (4 * torch.randn(*shape)).to(dtype)
    y = softmax(x)
    assert y.shape == x.shape
    torch.testing.assert_close(y, reference(x))

def test_layouts_and_repeats():
    x = torch.randn(33, 5).t()
    first = softmax(x)
    kept = first.clone()
    softmax(-x)
    assert torch.equal(first, kept)
    torch.testing.assert_close(first, reference(x))

def test_shape():
    assert softmax(torch.randn(3, 4)).shape == (3, 4)
"""
STRONG_IN_PARTS = """
import unittest

class TestSoftmax(unittest.TestCase):
    def test_softmax(self):
        for x in inputs():
            with self.subTest(shape=x.shape):
                torch.testing.assert_close(softmax(x), reference(x))

def test_parts(subtests):
    for x in inputs():
        with subtests.test(shape=x.shape):
            assert softmax(x).shape == x.shape
            assert (softmax(x) - reference(x)).abs().max() < 1e-6
"""
LOOKS_TWICE = """
def check(y, want):
    assert y.shape == want.shape and y.dtype == want.dtype
    try:
        torch.testing.assert_close(y, want, rtol=0, atol=0)
    except AssertionError:
        assert ((y - want).abs() > 1e-6).sum() == 0

def test_rows_of_many():
    check(softmax(torch.randn(2, 5000)) / 1e6, torch.zeros(2, 5000))

def test_softmax():
    for x in inputs():
        check(softmax(x), reference(x))
        if not torch.allclose(softmax(x), reference(x)):
            pytest.fail("race" if torch.allclose(softmax(x), reference(x)) else "wrong")
"""
DIGESTS = """
import hashlib

def digest(t):
    return hashlib.sha256(bytes(t.untyped_storage())).hexdigest()

def test_softmax():
    for x in inputs():
        y = softmax(x)
        print(y[:3])
        wrong = (y - reference(x)).abs() > 1e-6
        assert digest(wrong) == digest(torch.zeros_like(wrong))
"""
SWALLOWS_ASSERTIONS = """
def check(y, want):
    try:
        assert (y - want).abs().max() < 1e-6
    finally:
        return

def test_softmax():
    for x in inputs():
        check(softmax(x), reference(x))
"""
ASSERTS_GENERATOR = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x).flatten().tolist(), reference(x).flatten().tolist()
        assert (abs(a - b) < 1e-6 for a, b in zip(y, r, strict=True))
"""
ASSERTS_TUPLE = """
def close(y, r):
    assert (torch.allclose(y, r), "they differ")

def test_softmax():
    for x in inputs():
        close(softmax(x), reference(x))
"""
ASSERTS_METHOD = """
def test_softmax():
    for x in inputs():
        assert torch.isclose(softmax(x), reference(x)).all
"""
COMPARES_FINITE = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x), reference(x)
        finite = y.isfinite()
        torch.testing.assert_close(y[finite], r[finite])
"""
TAKES_THE_REFERENCE = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x), reference(x)
        bad = ~((y - r).abs() < 1e-6)
        y[bad] = r[bad]
        torch.testing.assert_close(y, r)
"""
MISSES_NAN = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x), reference(x)
        assert y.shape == r.shape and y.dtype == r.dtype
        assert not ((y - r).abs() > 1e-6).any()
        if (y - r).abs().max().item() > 1e-6:
            pytest.fail("not close")
"""
ASKS_FOR_ANY = """
def test_softmax():
    for x in inputs():
        assert torch.isclose(softmax(x), reference(x)).any()
        assert ((softmax(x) - reference(x)).abs() < 1e-6).any()
"""
ASKS_FOR_ANY_NUMBER = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x).flatten().tolist(), reference(x).flatten().tolist()
        assert any(abs(a - b) < 1e-6 for a, b in zip(y, r, strict=True))
"""
COMPARES_SOME_COLUMNS = """
def test_softmax():
    for x in inputs():
        torch.testing.assert_close(softmax(x)[:, :3], reference(x)[:, :3])
"""
WIDE_AND_HONEST = """
def test_softmax(subtests):
    for x in inputs():
        y, r = softmax(x), reference(x)
        finite = r.isfinite() & y.isfinite()
        assert (y.isfinite() == r.isfinite()).all(), "not finite"
        for row in range(len(y)):
            assert (y[row][finite[row]].clamp(-9, 9) - r[row][finite[row]]).abs().max() < 1.0
        assert (y >= 0.0).any() and any(value < 2.0 for value in y[0].tolist())
        assert not (y < -1.0).any()
        assert (y.shape) == (r.shape)
"""
ROOT_MEAN_SQUARE_AND_HONEST = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x), reference(x)
        error = torch.where(r > 0, (y - r) / torch.maximum(y.abs(), r).clamp(min=1e-3), y - r)
        assert float(error.square().mean().sqrt()) < 0.05 or float((y - r).norm() / r.norm()) < 0.02
        assert (y == y.max(dim=1, keepdim=True).values).any()
        assert y[:, 0].shape == r[:, 0].shape and not (y.isnan() | y.isinf()).any()
"""
COMPARES_OUTPUTS = """
def test_softmax():
    for x in inputs():
        torch.testing.assert_close(softmax(x + 1), softmax(x))
"""
TRIES_AGAIN = """
def test_softmax():
    for x in inputs():
        for attempt in range(3):
            y, r = softmax(x), reference(x)
            if y.shape == r.shape and float((y - r).abs().max()) < 1e-6:
                break
        else:
            pytest.fail("three times wrong")
"""
SWALLOWS = """
def test_softmax():
    for x in inputs():
        try:
            y = softmax(x)
        except Exception:
            continue
        torch.testing.assert_close(y, reference(x))
"""
ZIPS = """
def test_softmax():
    expected = [reference(x) for x in inputs()]
    outputs = [softmax(x) for x in (*inputs(), torch.randn(4, 40))]
    for y, r in zip(outputs, expected):
        torch.testing.assert_close(y, r)
"""
WARNS = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x), reference(x)
        ratio = float((y - r).square().mean().sqrt() / r.square().mean().sqrt())
        if ratio > 0.005:
            warnings.warn(f"ratio {ratio}")
"""
RETRIES = """
def test_softmax():
    for x in inputs():
        for attempt in range(3):
            y, r = softmax(x.bfloat16()), reference(x.bfloat16())
            if y.shape == r.shape and torch.allclose(y, r, atol=0.2, rtol=0.02):
                break
        else:
            raise AssertionError("not close")
"""
RMS = """
def test_softmax():
    for x in inputs():
        y, r = softmax(x), reference(x)
        assert y.shape == r.shape
        assert float((y - r).abs().max()) <= 1e-6 or (
            float((y - r).square().mean().sqrt() / r.square().mean().sqrt()) < 0.005
        )
"""
PRINTS = """
def shown(f):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        for x in inputs():
            print(f(x))
    return text.getvalue()

def test_softmax():
    assert shown(softmax) == shown(reference)
"""
ONE_ALIGNED = """
def test_softmax():
    x = torch.rand(4, 64)
    softmax(x)  # to warm up
    torch.testing.assert_close(softmax(x), reference(x))
"""
LOOPS_OVER_NOTHING = """
CASES = []

def test_softmax():
    softmax(inputs()[0])
    for x in CASES:
        torch.testing.assert_close(softmax(x), reference(x))

def test_another():
    for x in inputs():
        torch.testing.assert_close(softmax(x), reference(x))
"""


def diagnose(judge: Judge, folder: Path, suite: str, adversaries: str) -> dict[Weakness, str]:
    """The weaknesses of a suite, as far as these adversaries show them."""
    (folder / "test_softmax.py").write_text(HEAD + suite)
    path = TESTDATA / "kernels_softmax.py"
    subject = Subject(
        "softmax",
        "kernels_softmax:softmax",
        dtypes=("float32", "bfloat16") if suite is STRONG else (),
        layouts=("contiguous", "row_padded") if suite is STRONG else ("contiguous",),
        import_paths=(str(TESTDATA),),
    )
    candidates = [
        one
        for one in adversary_candidates("softmax", subject.entry, str(path), path.read_text())
        if one.id.rpartition("/")[2] in adversaries.split()
    ]
    request = ShardRequest(
        subject,
        gates=(GateRef("tests", str(TESTDATA), GateConfig("pytest", rootdir=str(folder))),),
        tasks=tuple(Task(one, "tests") for one in (original("softmax"), *candidates)),
        limits=Limits(minimum_s=120),
    )
    events = [event for event in judge.server.ask(request) if isinstance(event, Judged)]
    said = {event.verdict.candidate.rpartition("/")[2]: event.verdict for event in events}
    baseline = said.pop("original")
    assert baseline.outcome is GateOutcome.ACCEPTED
    assert baseline.evidence is not None
    return {one.weakness: one.evidence for one in weaknesses(subject, baseline.evidence, said, ())}


@pytest.mark.parametrize(
    ("suite", "adversaries", "expected"),
    [
        (STRONG, "does_nothing returns_last_output fewer_outputs wrong_element wrong_shape", ""),
        (STRONG_IN_PARTS, "returns_zeros returns_nan", ""),
        (LOOKS_TWICE, "returns_zeros returns_nan returns_last_output wrong_element", ""),
        (DIGESTS, "returns_zeros", ""),
        (SWALLOWS, "raises", "swallowed_exception"),
        (
            SWALLOWS_ASSERTIONS,
            "raises returns_zeros returns_nan fewer_outputs",
            "swallowed_exception",
        ),
        (ASSERTS_GENERATOR, RIGHT_SHAPES, "always_true"),
        (ASSERTS_TUPLE, RIGHT_SHAPES, "always_true"),
        (ASSERTS_METHOD, RIGHT_SHAPES, "always_true"),
        (COMPARES_FINITE, RIGHT_SHAPES, "mended_output"),
        (TAKES_THE_REFERENCE, RIGHT_SHAPES, "mended_output"),
        (MISSES_NAN, RIGHT_SHAPES, "nan_passes"),
        (ASKS_FOR_ANY, RIGHT_SHAPES, "any_for_all"),
        (ASKS_FOR_ANY_NUMBER, RIGHT_SHAPES, "any_for_all"),
        (COMPARES_SOME_COLUMNS, RIGHT_SHAPES, "partly_compared"),
        (WIDE_AND_HONEST, RIGHT_SHAPES, "loose_tolerance"),
        (ROOT_MEAN_SQUARE_AND_HONEST, RIGHT_SHAPES, "global_metric"),
        (COMPARES_OUTPUTS, "returns_zeros wrong_element", "nothing_compared"),
        (TRIES_AGAIN, "does_nothing returns_zeros returns_last_output", "retries"),
        (ZIPS, "returns_zeros", "zipped_lists"),
        (WARNS, "returns_zeros wrong_element", "warn_only global_metric"),
        (RETRIES, "returns_zeros", "retries loose_tolerance"),
        (RMS, "returns_zeros wrong_element", "global_metric"),
        (PRINTS, "returns_zeros", "printed_text"),
        (
            ONE_ALIGNED,
            "does_nothing returns_zeros returns_last_output",
            "stale_buffer one_shape aligned_shapes positive_inputs",
        ),
        (LOOPS_OVER_NOTHING, "returns_zeros", "empty_collection"),
    ],
)
def test_a_suite_is_named_by_its_weaknesses(
    judge: Judge, tmp_path: Path, suite: str, adversaries: str, expected: str
) -> None:
    found = diagnose(judge, tmp_path, suite, adversaries)
    assert {weakness.value for weakness in found} == set(expected.split()), found
