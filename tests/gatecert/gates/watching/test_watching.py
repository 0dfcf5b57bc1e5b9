"""A watched gate does what it always did, and what it did is on record."""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import math
import subprocess
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from gatecert.gates.config import GateConfig
from gatecert.gates.evidence import BY_HAND, Compared, Evidence, LaunchInputs
from gatecert.gates.watching.observing import CallObserver
from gatecert.gates.watching.watch import watch
from gatecert.mutants import adversaries
from gatecert.mutants.adversaries import adversary_candidates
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import GateRef, Judged, Limits, ShardRequest, Task
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA, Judge, callable_gate

A = torch.arange(6.0).reshape(2, 3)
B = A + 0.5


def compared(evidence: Evidence) -> list[tuple[str, bool, int]]:
    return [(one.function, one.passed, one.times) for one in evidence.compared]


@pytest.fixture(autouse=True)
def _no_adversary_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have called some, and nothing is measured after that."""
    monkeypatch.setattr(adversaries, "_CALLS", adversaries._Counter())


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("torch.allclose", lambda a, b: torch.allclose(a, b)),
        ("torch.allclose", lambda a, b: a.allclose(b)),
        ("torch.equal", lambda a, b: torch.equal(a, b)),
        ("torch.isclose", lambda a, b: torch.isclose(a, b)),
        ("torch.testing.assert_close", lambda a, b: torch.testing.assert_close(a, b)),
        ("numpy.allclose", lambda a, b: np.allclose(a, b)),
        ("numpy.isclose", lambda a, b: np.isclose(a, b)),
        ("numpy.array_equal", lambda a, b: np.array_equal(a, b)),
        ("numpy.testing.assert_allclose", lambda a, b: np.testing.assert_allclose(a, b)),
        ("numpy.testing.assert_array_equal", lambda a, b: np.testing.assert_array_equal(a, b)),
        (
            "numpy.testing.assert_array_almost_equal",
            lambda a, b: np.testing.assert_array_almost_equal(a, b),
        ),
        ("math.isclose", lambda a, b: math.isclose(float(a[0][0]), float(b[0][0]))),
        ("pytest.approx", lambda a, b: np.asarray(a) == pytest.approx(np.asarray(b))),
    ],
)
def test_a_comparison_counts_once_with_what_it_said(name: str, call: object) -> None:
    pair = (A.numpy(), B.numpy()) if name.startswith(("numpy", "pytest")) else (A, B)
    with watch() as seen:
        call(pair[0], pair[0])  # type: ignore[operator]
        with contextlib.suppress(AssertionError):
            call(*pair)  # type: ignore[operator]
    said = [one for one in compared(seen.evidence()) if one[0] != BY_HAND]
    assert said == [(name, True, 1), (name, False, 1)]


def test_answers_and_exceptions_are_those_of_the_function() -> None:
    with watch():
        assert torch.allclose(A, A) is True
        assert not torch.isclose(A, B).any()
        assert torch.isclose(A, A).shape == (2, 3)
        with pytest.raises(AssertionError, match="Tensor-likes are not close"):
            torch.testing.assert_close(A, B)
        with pytest.raises(RuntimeError, match="Float did not match Double"):
            torch.allclose(A, A.double())
        with pytest.raises(TypeError):
            np.testing.assert_allclose(A.numpy())
        assert list(zip([1, 2], "ab", strict=False)) == [(1, "a"), (2, "b")]
        assert isinstance(zip([1]), zip)
        with pytest.raises(ValueError, match="shorter"):
            list(zip([1.0, 2.0], [1.0], strict=True))


def test_everything_is_as_it_was_afterwards() -> None:
    places = [
        (torch.testing, "assert_close"), (np.testing, "assert_allclose"), (np, "allclose"),
        (np.linalg, "norm"), (math, "isclose"), (warnings, "warn"), (builtins, "print"),
        (builtins, "zip"),
        (contextlib.redirect_stdout, "__enter__"),
    ]  # fmt: skip
    before = [getattr(owner, name) for owner, name in places]
    with watch():
        assert all(
            getattr(owner, name) is not was
            for (owner, name), was in zip(places, before, strict=True)
        )
        kept = torch.testing.assert_close
    assert [getattr(owner, name) for owner, name in places] == before
    assert "__enter__" not in vars(contextlib.redirect_stdout)
    kept(A, A)


def test_tolerance_shapes_and_dtypes_are_those_in_force() -> None:
    with watch() as seen:
        torch.allclose(A[None], A, atol=1e-2)
        torch.testing.assert_close(A.half(), A.half())
        np.testing.assert_array_almost_equal(A.numpy(), A.numpy(), 3)
    wide, default, _, decimal = seen.evidence().compared
    assert (wide.shapes, wide.atol, wide.rtol) == (((1, 2, 3), (2, 3)), 1e-2, 1e-5)
    assert (default.dtypes, default.atol, default.rtol) == (("float16", "float16"), 1e-5, 1e-3)
    assert decimal.atol == pytest.approx(1.5e-3)


def test_a_tolerance_is_held_against_values_and_errors() -> None:
    x = torch.linspace(1, 2, 101)
    with watch() as seen:
        torch.allclose(x + 0.05, x, rtol=0.0, atol=0.15)
        torch.allclose(x[1:].bfloat16().float(), x[1:].bfloat16().float(), rtol=0.0, atol=0.15)
    single, half = seen.evidence().compared
    assert single.wrong_by == pytest.approx(0.1, rel=0.01)
    assert single.of_default == pytest.approx(0.15 / 1.2e-5, rel=0.05)
    assert single.used == pytest.approx(1 / 3, rel=0.01)
    # Widened for the comparison, it is still of 16 bits.
    assert half.of_default is None


@pytest.mark.parametrize(
    ("read", "ops"),
    [
        (lambda a, b: bool((a - b).abs().max() < 1), ("sub", "abs", "max", "lt")),
        (lambda a, b: float((a.double() - b).pow(2).mean().sqrt()), ("sub", "pow", "mean", "sqrt")),
        (lambda a, b: ((a - b).norm() / b.norm()).item(), ("sub", "norm", "div")),
        (
            lambda a, b: torch.nn.functional.cosine_similarity(a, b, 0).mean().item(),
            ("cosine_similarity", "mean"),
        ),
        (lambda a, b: bool((a == b).all()), ("eq", "all")),
        (
            lambda a, b: bool(((a - b).abs() / b.abs().mean()).max() < 1),
            ("sub", "abs", "div", "max", "lt"),
        ),
    ],
)  # fmt: skip
def test_a_comparison_by_hand_is_known_by_its_operations(read: object, ops: object) -> None:
    with watch() as seen:
        read(A, B)  # type: ignore[operator]
    (one,) = seen.evidence().compared
    assert (one.function, one.ops, one.shapes) == (BY_HAND, ops, ((2, 3), (2, 3)))


def test_a_bound_by_hand_is_a_tolerance() -> None:
    x = torch.full((50,), 2.0)
    with watch() as seen:
        assert (x - x).abs().max() < 0.5
    (one,) = seen.evidence().compared
    assert (one.atol, one.wrong_by) == (0.5, 0.25)


def test_looking_at_one_side_or_leaving_torch_is_told_apart() -> None:
    with watch() as seen:
        assert not A.isnan().any()
        assert np.mean(A.numpy()) > 0
    assert seen.evidence().compared == (
        Compared(BY_HAND, True, ops=("isnan", "any")),
        Compared(BY_HAND, True, ops=("values",)),
        Compared(BY_HAND, True, ops=("mean", "values")),
    )


@pytest.mark.parametrize("change", ["float", "double", "bool", "int", "half"])
def test_a_change_of_dtype_reads_no_number(change: str) -> None:
    with watch() as seen:
        seen.begin_test("test")
        getattr(A - B, change)()
        seen.end_test("test", True)
    assert seen.evidence().compared == ()
    assert seen.evidence().compared_nothing == ("test",)


def test_a_comparison_by_hand_goes_on_after_a_change_of_dtype() -> None:
    with watch() as seen:
        assert (A - B).float().abs().max().float().item() < 1
    (one,) = seen.evidence().compared
    assert (one.ops, one.shapes) == (("sub", "abs", "max"), ((2, 3), (2, 3)))


def test_what_a_test_of_another_subject_does_is_left_out() -> None:
    with watch(entry="kernels:softmax", tests={"test_mine"}) as seen:
        torch.equal(A, A)
        for name in ("test_mine", "test_other", "test_caller", "test_mine"):
            seen.begin_test(name)
            if name == "test_caller":
                seen.called(LaunchInputs("kernels:softmax"))
                seen.returned(None, False)
            torch.allclose(A, A, atol=0.05 if name == "test_other" else 1e-8)
            print(f"{name}: mismatch of 0.5")
            list(zip([A, A], [B], strict=False))
            launched = LaunchInputs(f"kernels:{name}")
            seen.launched(launched, ())
            seen.end_test(name, True)
    evidence = seen.evidence()
    assert compared(evidence) == [("torch.equal", True, 1), ("torch.allclose", True, 3)]
    assert {one.atol for one in evidence.compared} == {None, 1e-8}
    assert [test.test for test in evidence.tests] == ["test_mine", "test_caller"]
    assert [one.kernel for one in evidence.launches] == ["kernels:test_mine", "kernels:test_caller"]
    assert [one.times for one in evidence.launches] == [2, 1]
    assert evidence.shown == 3 and [one.times for one in evidence.zips] == [3]
    assert evidence.warnings == (
        "test_mine: mismatch of 0.5",
        "test_caller: mismatch of 0.5",
    )
    assert [seen.counts(name) for name in ("test_mine", "test_other", "test_caller")] == [
        True,
        False,
        True,
    ]
    assert seen.evidence() == evidence


def test_a_warning_keeps_its_place_and_is_kept_once_whatever_its_numbers() -> None:
    with watch() as seen, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for ratio in (0.1, 0.2):
            warnings.warn(f"ratio {ratio}", stacklevel=1)
        print("case 1: MISMATCH")
        print("done")
    assert {(Path(one.filename).name, str(one.message)) for one in caught} == {
        ("test_watching.py", "ratio 0.1"),
        ("test_watching.py", "ratio 0.2"),
    }
    assert seen.evidence().warnings == ("ratio 0.1", "case 1: MISMATCH")


def test_unequal_lists_of_tensors_are_noted_and_others_are_not() -> None:
    with watch() as seen:
        for _ in zip([A, A], [B], strict=False):
            pass
        for _ in zip({"y": A}.values(), (), strict=False):
            pass
        list(zip(["y", "mean"], [A], strict=False))
        list(zip([A], [B], strict=False))
        sums = [float(A.sum()), float(B.sum()), 7.5]
        rest = sums[1:]
        list(zip(sums, rest, strict=False))
        list(zip(sums[:2], sums, sums[1:], strict=False))
        rows = torch.arange(5.0)
        after = rows[1:]
        list(zip(rows, after, strict=False))
        list(zip(rows.numpy(), rows.numpy()[2:], strict=False))
        list(zip(rows.tolist(), rows.tolist()[1:], strict=False))
        list(zip(rows, rows.clone()[1:], strict=False))
        list(zip(rows.tolist(), rows.tolist()[:3], strict=False))
    evidence = seen.evidence()
    assert [one.lengths for one in evidence.zips] == [(2, 1), (1, 0), (5, 4), (5, 3)]
    assert evidence.zips[0].place.startswith("test_watching.py:")


def test_text_that_is_read_back_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with watch() as seen:
        print(A)
        print(f"{0.5:.2f}")
        print(1)
        capsys.readouterr()
        # Of another process it may be the exit status that is looked at.
        subprocess.run(["true"], capture_output=True, check=True)
    evidence = seen.evidence()
    assert (evidence.captured, evidence.shown) == (1, 2)


def test_a_no_is_settled_by_a_yes_on_one_of_its_sides() -> None:
    with watch() as seen:
        for number, other in enumerate((B, B.clone())):
            seen.begin_test(f"test_{number}")
            torch.equal(A, B)
            with contextlib.suppress(AssertionError):
                torch.testing.assert_close(A, B)
            torch.allclose(A.clone(), other, atol=1.0)
            seen.end_test(f"test_{number}", True)
    first, second = seen.evidence().tests
    assert (first.said_no, first.settled, first.objected, first.settled_objected) == (2, 2, 1, 1)
    assert (second.said_no, second.settled, second.ends_on_yes) == (2, 0, True)


def test_an_assertion_that_fails_is_counted_whatever_comes_of_it() -> None:
    with watch() as seen:
        seen.begin_test("test_a")
        with contextlib.suppress(AssertionError):
            assert bool((A - B).abs().max() < 0.1)
        assert bool((A - B).abs().max() < 1)
        seen.end_test("test_a", True)
    assert seen.evidence().tests[0].asserts_failed == 1


@dataclasses.dataclass
class Batch:
    x: torch.Tensor


def test_tensors_inside_of_dicts_and_objects_are_inputs() -> None:
    x = -torch.ones(4, 3).t()
    given = ({"x": x}, Batch(x), types.SimpleNamespace(nested=[Batch(x)]))
    with watch() as seen:
        for one in given:
            observer = CallObserver(seen, "m:f")
            observer.entering((one, torch.ones(2)), {})
            observer.left(None, None)
    inputs = seen.evidence().entry_inputs
    assert [(one.negative, one.contiguous) for one in inputs] == [(True, False)] * 3
    assert inputs[0].shapes == (("argument 0['x']", (3, 4)), ("argument 1", (2,)))


def loops(pairs: list[torch.Tensor]) -> None:
    for one in pairs:
        assert torch.equal(one, one)


def test_a_test_is_known_by_what_it_compares() -> None:
    with watch() as seen:
        for number, pairs in enumerate(([A], [])):
            seen.begin_test(f"test_{number}", loops)
            loops(pairs)
            seen.end_test(f"test_{number}", True)
        seen.begin_test("test_2", len)
        seen.end_test("test_2", True)
        seen.begin_test("test_0", loops)
        seen.end_test("test_0", False)
    evidence = seen.evidence()
    first, second, third = evidence.tests
    assert (first.runs, first.compared, first.passed) == (2, 1, False)
    assert [test.idle_loop for test in (second, third)] == [True, False]
    assert evidence.compared_nothing == ("test_1", "test_2")


SUITE = """
import pytest, torch
from torch.testing import assert_close
from kernels_softmax import softmax

@pytest.mark.parametrize("x", [torch.full((2, 5), -1.0), torch.rand(5, 3).t()])
def test_softmax(x):
    assert_close(softmax(x), torch.softmax(x, 1))
"""


def ask(judge: Judge, gate: GateConfig, *names: str) -> dict[str, Evidence]:
    """Evidence of the original and of some adversaries."""
    path = TESTDATA / "kernels_softmax.py"
    subject = Subject("softmax", "kernels_softmax:softmax", import_paths=(str(TESTDATA),))
    adversaries = [
        one
        for one in adversary_candidates("s", subject.entry, str(path), path.read_text())
        if one.id.rpartition("/")[2] in names
    ]
    request = ShardRequest(
        subject,
        gates=(GateRef("tests", str(TESTDATA), gate),),
        tasks=tuple(Task(one, "tests") for one in (original("softmax"), *adversaries)),
        limits=Limits(minimum_s=120),
    )
    events = [event for event in judge.server.ask(request) if isinstance(event, Judged)]
    return {e.verdict.candidate.rpartition("/")[2]: e.verdict.evidence for e in events}  # type: ignore[misc]


def test_launches_and_calls_of_a_suite_are_on_record(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "test_softmax.py").write_text(SUITE)
    seen = ask(judge, GateConfig("pytest", rootdir=str(tmp_path)), "returns_zeros", "raises")
    evidence = seen["original"]
    assert evidence.entry_calls == 2
    assert [(one.contiguous, one.negative) for one in evidence.entry_inputs] == [
        (True, True),
        (False, False),
    ]
    assert evidence.launches[0] == LaunchInputs(
        kernel="kernels_softmax:softmax_kernel",
        shapes=(("x_ptr", (2, 5)), ("y_ptr", (2, 5))),
        dtypes=("float32", "float32"),
        blocks=(("BLOCK", 8),),
        negative=True,
        programs=2,
        masked=True,
    )
    # The launcher makes its input contiguous.
    assert evidence.launches[1].contiguous
    assert compared(evidence) == [
        ("torch.testing.assert_close", True, 1),
        ("torch.testing.assert_close", True, 1),
    ]
    assert [(test.calls, test.launches, test.compared) for test in evidence.tests] == [
        (1, 1, 1),
        (1, 1, 1),
    ]
    assert compared(seen["returns_zeros"]) == [("torch.testing.assert_close", False, 1)]
    assert (seen["raises"].entry_calls, seen["raises"].entry_raised) == (1, 1)


def test_a_callable_gate_is_watched(judge: Judge) -> None:
    evidence = ask(judge, callable_gate("gate_compares"))["original"]
    assert (evidence.entry_calls, evidence.entry_raised) == (1, 0)
    assert compared(evidence) == [("torch.allclose", True, 1)]
    assert [test.test for test in evidence.tests] == ["gate_compares:gate"]
