"""Claims about the oracle: no defect known of another checker is one of ours.

`defects` has the list, with the sources.
"""

from __future__ import annotations

import functools
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

from gatecert.gates.oracle import OracleGate, PreparedOracle
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.comparators.where_exact import judge_where_exact
from gatecert.oracle.formats import FORMATS, round_to, to_float64, torch_dtype
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.subjects import Subject
from tests.gatecert.gates import wrong_kernels, wrong_sums
from tests.gatecert.gates.asking import Judge, mutated
from tests.gatecert.gates.defects import ACCEPTED_ELSEWHERE, REJECTED_ELSEWHERE, TESTED_ELSEWHERE

DTYPES = ("float32", "float16", "bfloat16")
LAYOUTS = ("contiguous", "row_padded")
OPERATIONS = (
    *("row_moments", "leaky_relu", "log_softmax", "softmax_backward", "softmax"),
    *("transpose", "argmax", "matmul", "add_rms_norm", "rms_norm", "masked_softmax"),
)
WITHOUT_NONFINITE = {"matmul", "row_moments", "argmax", "masked_softmax"}
"""Operations whose inputs are finite."""
ROOT = Path(__file__).parents[2]


def operation_of(entry: str) -> str:
    return next(name for name in OPERATIONS if entry.startswith(name))


def entry_of(name: str) -> str:
    """`module:function` of a kernel."""
    home = wrong_kernels if hasattr(wrong_kernels, name) else wrong_sums
    return f"{home.__name__}:{name}"


@functools.cache
def prepared(operation: str) -> PreparedOracle:
    """The oracle's cases of an operation; the entry comes later."""
    subject = Subject("s", entry_of(operation), operation, DTYPES, LAYOUTS)
    return OracleGate().prepare(subject, seed=0, quick=False)


def say(entry: str, kind: CandidateKind = CandidateKind.MUTANT) -> Verdict:
    """The oracle's verdict on one of the kernels, over all its cases."""
    gate = prepared(operation_of(entry))
    subject = Subject("s", entry_of(entry), gate.subject.operation)
    bound = PreparedOracle(gate.gate, subject, gate.operation, gate.comparator, gate.cases)
    return bound.judge(Candidate(entry, kind, "s", {}), stop_at_first=True)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [(entry, reason) for _, entry, reason in ACCEPTED_ELSEWHERE],
    ids=[name for name, _, _ in ACCEPTED_ELSEWHERE],
)
def test_what_another_checker_lets_through_is_rejected(entry: str, reason: Reason | None) -> None:
    wrong_kernels._EARLIER.clear()
    verdict = say(entry)
    assert verdict.outcome is GateOutcome.REJECTED, verdict
    if reason is not None:
        assert verdict.reason is reason, verdict


@pytest.mark.parametrize(
    "entry",
    [entry for _, entry in REJECTED_ELSEWHERE],
    ids=[name for name, _ in REJECTED_ELSEWHERE],
)
def test_what_another_checker_rejects_wrongly_is_accepted(entry: str) -> None:
    verdict = say(entry, CandidateKind.ORIGINAL)
    assert verdict.outcome is GateOutcome.ACCEPTED, verdict
    operation = operation_of(entry)
    recipes = {prepared_case.case.recipe for prepared_case in prepared(operation).cases}
    assert ("nonfinite" in recipes) is (operation not in WITHOUT_NONFINITE)


@pytest.mark.parametrize("defect", TESTED_ELSEWHERE)
def test_what_is_said_to_be_tested_elsewhere_is(defect: str) -> None:
    file, _, name = TESTED_ELSEWHERE[defect].partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text()


def test_every_wrong_kernel_stands_for_a_defect() -> None:
    named = {entry for _, entry, _ in ACCEPTED_ELSEWHERE} | {one for _, one in REJECTED_ELSEWHERE}
    there = {
        name
        for module in (wrong_kernels, wrong_sums)
        for name, made in vars(module).items()
        if inspect.isfunction(made) and made.__module__ == module.__name__ and name[0] != "_"
    }
    assert there - named == {"softmax_raises_import_error", "softmax_out_of_memory"}


@pytest.mark.parametrize("kind", [CandidateKind.ORIGINAL, CandidateKind.MUTANT])
@pytest.mark.parametrize("entry", ["softmax_raises_import_error", "softmax_out_of_memory"])
def test_an_environment_that_fails_is_no_catch_as_it_is_in_gpuemu(
    entry: str, kind: CandidateKind
) -> None:
    assert say(entry, kind).outcome is GateOutcome.ERROR


def test_an_original_that_raises_is_no_catch_either() -> None:
    assert say("softmax_raises", CandidateKind.ORIGINAL).outcome is GateOutcome.ERROR


def test_the_kernel_s_own_output_is_judged_and_never_the_reference_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # gpuemu's `ci` submits a clone of the reference in place of a kernel's output.
    calls = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.shape)
        return torch.softmax(x.float(), 1).to(x.dtype)

    monkeypatch.setattr(wrong_kernels, "softmax", counted)
    verdict = say("softmax")
    assert len(calls) > verdict.cases == len(prepared("softmax").cases)


def test_no_element_of_any_output_is_left_out() -> None:
    # CUDA-L2 ignores results past 2047, FlashInfer-Bench 5% of elements.
    for operation in OPERATIONS:
        verdict = say(operation, CandidateKind.ORIGINAL)
        sizes = [e.reference.size for c in prepared(operation).cases for e in c.expected.outputs]
        assert verdict.compared == sum(sizes)
        assert (verdict.exactly > 0) is (get_operation(operation).exact is not None)


def test_a_failure_s_case_makes_the_same_inputs_and_fails_again() -> None:
    # Failures that gpuemu stores carry nothing to make their inputs from.
    verdict = say("softmax_tail_of_zeros")
    case = parse_case(verdict.case)
    (found,) = [one for one in prepared("softmax").cases if one.case == case]
    again = make_inputs(get_operation("softmax"), case)
    assert again.sha256 == found.inputs.sha256
    output = wrong_kernels.softmax_tail_of_zeros(*again.args)
    gate = prepared("softmax")
    assert not judge_where_exact(gate.comparator, found.expected.outputs[0], output).passed


def test_every_case_has_its_own_inputs_whatever_a_kernel_does_to_them() -> None:
    # cuda-kernel-verifier keeps inputs by reference: what is run in place runs on changed data.
    before = [one.inputs.args[0].clone() for one in prepared("softmax").cases]
    verdict = say("softmax_writes_its_input")
    assert "wrote to x" in verdict.detail
    for old, one in zip(before, prepared("softmax").cases, strict=True):
        assert torch.equal(old.nan_to_num(7.0), one.inputs.args[0].nan_to_num(7.0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_subnormal_outputs_are_read_as_what_they_are(dtype: str) -> None:
    # gpuemu reads the smallest of float16, 2^-24, as 6.1e-5 and the largest, 6.1e-5, as 1.22e-4.
    fmt = FORMATS[dtype]
    largest = 2 ** (fmt.precision - 1) - 1
    bits = torch.tensor([1, 2, largest, largest + 1], dtype=torch.int16)
    step = 2.0 ** (fmt.min_exponent + 1 - fmt.precision)
    wanted = step * np.array([1, 2, largest, largest + 1])
    assert np.array_equal(to_float64(bits.view(torch_dtype(dtype))), wanted)
    assert wanted[-1] == fmt.smallest_normal


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_are_rounded_to_nearest_with_subnormals_and_nan_as_they_are(dtype: str) -> None:
    # gpuemu truncates float16, flushes its subnormals, turns NaN into infinity, and makes
    # bfloat16 in float16's layout.
    transpose = get_operation("transpose")
    fmt = FORMATS[dtype]

    def values(recipe: str) -> np.ndarray:  # type: ignore[type-arg]
        case = Case("transpose", (("M", 40), ("N", 65)), dtype, recipe=recipe)
        return make_inputs(transpose, case).args[0].double().numpy()

    tiny = np.abs(values("subnormal"))
    assert (tiny > 0).all() and (tiny < fmt.smallest_normal).all()
    assert tiny.min() < fmt.smallest_normal / 100
    special = values("nonfinite")
    assert np.isnan(special).any() and np.isposinf(special).any() and np.isneginf(special).any()
    ordinary = values("normal")
    assert np.array_equal(round_to(ordinary, fmt), ordinary)
    assert len(np.unique(ordinary)) > 200
    nearest = round_to(np.array([1.0 + 0.75 * 2.0 ** (1 - fmt.precision)]), fmt)
    assert nearest[0] == 1.0 + 2.0 ** (1 - fmt.precision)


def test_an_access_outside_a_buffer_is_found_without_any_change_of_values(judge: Judge) -> None:
    # gpucheck compares the allocator's bytes, CUDA-L2 sees writes next to a buffer alone.
    verdict = judge("oracle", module="kernels_out_of_bounds")
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.BOUNDS)


def test_a_mutant_is_held_against_the_formula_and_not_against_its_original(judge: Judge) -> None:
    # GEAK's reference is the original of the mutated kernel: a bug in both is not seen.
    wrong = mutated("x / tl.sum(x, axis=0)", "x / (tl.sum(x, axis=0) * 1.001)")
    assert judge("oracle", files=wrong).outcome is GateOutcome.REJECTED
