"""Claims about the oracle: no defect known of another checker is one of ours.

Each line of the tables names the system whose checker has, or had, the defect, and what our oracle
says of a kernel that it lets through (or of a right one that it rejects). Read in their sources:

| system | source |
|---|---|
| gpuemu | `Skelf-Research/gpuemu`: crates/gpuemu-daemon/src/validator.rs, server.rs |
| CUDA-L2 | `deepreinforce-ai/CUDA-L2`: zero_one_correctness_check.py |
| gpucheck | PyPI gpucheck 0.1.0 |
| cuda-kernel-verifier | PyPI cuda-kernel-verifier 1.0.2 |
| geak-eval, GEAK | `AMD-AGI/GEAK-eval`: geak_eval/evaluators/TB_correctness.py |
| KernelBench | `ScalingIntelligence/KernelBench`: src/eval.py |
| KernelBench-X | `BonnieW05/KernelBenchX`: EVAL/1_exe_acc.py |
| robust-kbench | `SakanaAI/robust-kbench`: robust_kbench/sandbox/correct_forward_fn.py |
| TritonBench-G | `thunlp/TritonBench`: EVAL/eval_G |
| FlashInfer-Bench | `flashinfer-ai/flashinfer-bench`: flashinfer_bench/bench/utils.py |
| BackendBench | `meta-pytorch/BackendBench`: BackendBench/eval.py |
| GPU MODE | `gpu-mode/reference-kernels`: problems/*/utils.py |
| MultiKernelBench | `wzzll123/MultiKernelBench`: utils/correctness.py |
| tritonbench | `meta-pytorch/tritonbench`: tritonbench/operators |
| Triton | `triton-lang/triton`: python/triton/testing.py (old) |
| Liger | `linkedin/Liger-Kernel`: test/transformers |
| FlagGems | `FlagOpen/FlagGems`: tests/accuracy_utils.py |
| flash-attention, FLA | `Dao-AILab/flash-attention`, `fla-org/flash-linear-attention`: tests |
| vLLM | `vllm-project/vllm`: tests/kernels |
| CUTLASS | `NVIDIA/cutlass`: tools/profiler, include/cutlass/relatively_equal.h |
| DeepGEMM | `deepseek-ai/DeepGEMM`: tests |
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from gatecert.gates.oracle import OracleGate, PreparedOracle
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.comparators.where_exact import judge_where_exact
from gatecert.oracle.formats import FORMATS, round_to
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.subjects import Subject
from tests.gatecert.gates import wrong_kernels
from tests.gatecert.gates.asking import Judge, mutated

DTYPES = ("float32", "float16", "bfloat16")
LAYOUTS = ("contiguous", "row_padded")
OPERATIONS = (
    *("row_moments", "leaky_relu", "log_softmax", "softmax"),
    *("transpose", "argmax", "matmul", "rms_norm"),
)


def operation_of(entry: str) -> str:
    return next(name for name in OPERATIONS if entry.startswith(name))


@functools.cache
def prepared(operation: str) -> PreparedOracle:
    """The oracle's cases of an operation; the entry comes later."""
    subject = Subject("s", f"{wrong_kernels.__name__}:{operation}", operation, DTYPES, LAYOUTS)
    return OracleGate().prepare(subject, seed=0, quick=False)


def say(entry: str, kind: CandidateKind = CandidateKind.MUTANT) -> Verdict:
    """The oracle's verdict on one of the kernels, over all its cases."""
    gate = prepared(operation_of(entry))
    subject = Subject("s", f"{wrong_kernels.__name__}:{entry}", gate.subject.operation)
    bound = PreparedOracle(gate.gate, subject, gate.operation, gate.comparator, gate.cases)
    return bound.judge(Candidate(entry, kind, "s", {}), stop_at_first=True)


ACCEPTED_ELSEWHERE = [
    # NaN and infinities
    ("gpuemu: NaN > atol is false", "softmax_finite_for_nan", Reason.NONFINITE),
    ("FlashInfer-Bench: NaN in the reference passes", "softmax_finite_for_nan", Reason.NONFINITE),
    ("KernelBench: no row of -inf", "softmax_unscaled_masked_rows", Reason.NONFINITE),
    ("gpuemu: NaN for a matching infinity", "transpose_nan_for_inf", Reason.NONFINITE),
    ("gpucheck: sign of an infinity", "transpose_inf_without_sign", Reason.NONFINITE),
    ("gpuemu: NaN becomes infinity in float16", "transpose_inf_for_nan", Reason.NONFINITE),
    # Formats
    ("gpuemu: float16 subnormals decode wrongly", "transpose_flushes_subnormals", Reason.VALUES),
    ("gpuemu: bfloat16 in float16's layout", "transpose_through_float16", Reason.VALUES),
    ("Triton: one step of a copy", "transpose_one_step_off", Reason.VALUES),
    ("gpuemu: integers under a float tolerance", "argmax_last_of_ties", Reason.VALUES),
    # The contract
    ("robust-kbench: a shape that broadcasts", "softmax_one_row", Reason.CONTRACT),
    ("FLA: no check of shapes", "softmax_flat", Reason.CONTRACT),
    ("gpuemu: a shape compared with itself", "softmax_flat", Reason.CONTRACT),
    ("GPU MODE: no check of dtypes", "softmax_in_float32", Reason.CONTRACT),
    ("CUDA-L2: a dtype changed on output", "softmax_in_float64", Reason.CONTRACT),
    ("GPU MODE: an index of another dtype", "argmax_int32", Reason.CONTRACT),
    ("CUDA-L1: not a tensor", "softmax_as_list", Reason.CONTRACT),
    ("geak-eval: an empty tuple is zipped", "softmax_nothing", Reason.CONTRACT),
    ("TritonBench-G: nothing printed equals nothing", "softmax_none", Reason.CONTRACT),
    ("geak-eval: a further output is not noticed", "softmax_twice", Reason.CONTRACT),
    ("geak-eval: a missing output is not noticed", "row_moments_without_variance", Reason.CONTRACT),
    ("geak-eval: an empty list", "row_moments_without_any", Reason.CONTRACT),
    ("geak-eval: outputs by order, keys ignored", "row_moments_swapped", Reason.VALUES),
    ("geak-eval: tolerance lost in a list", "row_moments_wrong_last", Reason.VALUES),
    # Memory and state
    ("FlashInfer-Bench: outputs not poisoned", "softmax_unwritten", Reason.NONFINITE),
    ("CUDA-L2: outputs zeroed beforehand", "softmax_writes_no_zeros", Reason.NONFINITE),
    ("KernelBench: stale output of an earlier call", "softmax_stale", None),
    ("cuda-kernel-verifier: inputs by reference", "softmax_writes_its_input", None),
    ("KernelBench: no repeat", "softmax_varies", Reason.NOT_REPEATABLE),
    ("KernelBench: contiguous only", "softmax_ignores_strides", None),
    # Tolerances
    ("KernelBench: zeros below atol", "softmax_of_zeros", Reason.VALUES),
    ("FlagGems: 97% of a softmax below atol", "softmax_of_zeros", Reason.VALUES),
    ("FlashInfer-Bench: 0.5% too large", "softmax_one_part_in_200", Reason.VALUES),
    ("CUTLASS profiler: within 5%", "softmax_one_part_in_200", Reason.VALUES),
    ("flash-attention: twice the worst error anywhere", "softmax_one_wrong_element", Reason.VALUES),
    ("FLA: one element in an RMS", "softmax_one_wrong_element", Reason.VALUES),
    ("FlashInfer-Bench: 5% of elements free", "softmax_one_wrong_element", Reason.VALUES),
    ("DeepGEMM: one zeroed row in a cosine", "softmax_one_wrong_row", Reason.VALUES),
    ("KernelBench-X: one wrong row in a global metric", "softmax_one_wrong_row", Reason.VALUES),
    ("Triton: a signed maximum as divisor", "log_softmax_all_one_too_low", Reason.VALUES),
    ("Liger: atol of 1", "log_softmax_all_one_too_low", Reason.VALUES),
    ("FlagGems: atol times K", "matmul_off_by_a_ten_thousandth_of_k", Reason.VALUES),
    ("gpucheck: atol times the root of K", "matmul_off_by_a_ten_thousandth_of_k", Reason.VALUES),
    ("vLLM: tiny inputs hide a scale", "rms_norm_a_sixth_too_large", Reason.VALUES),
    ("CUDA-L2: positions past 2047 ignored", "matmul_past_2047", Reason.VALUES),
    # Inputs
    ("CUDA-L2: no negative input", "matmul_positive_part", Reason.VALUES),
    ("CUDA-L2: no sign", "matmul_of_magnitudes", Reason.VALUES),
    ("CUDA-L2: min for a product", "matmul_minimum_for_product", Reason.VALUES),
    ("CUDA-L2: a narrow accumulator", "matmul_narrow_accumulator", None),
    ("CUDA-L2: sizes padded to the tile", "matmul_whole_tiles_only", Reason.VALUES),
    ("gpuemu: K = 1 hides a lost sum", "matmul_last_sum", Reason.VALUES),
    ("KernelBench: inputs in [0, 1)", "leaky_relu_without_slope", Reason.VALUES),
    ("KernelBench: one value of a scalar", "leaky_relu_fixed_slope", Reason.VALUES),
    ("MultiKernelBench: no large value", "softmax_without_maximum", None),
    ("KernelBench: aligned shapes", "softmax_tail_of_zeros", Reason.VALUES),
    ("BackendBench: dims up to 20", "softmax_wide_rows_end", Reason.VALUES),
    ("KernelBench: no tiny denominator", "rms_norm_without_eps", None),
    # Exceptions
    ("cuda-kernel-verifier: an exception swallowed", "softmax_raises", Reason.RAISED),
    ("tritonbench: a comparison's result discarded", "softmax_raises", Reason.RAISED),
]


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
    "operation",
    [
        pytest.param("softmax", id="gpuemu: NaN in both fails"),
        pytest.param("log_softmax", id="FlashInfer-Bench: -inf in both fails"),
        pytest.param("transpose", id="KernelBench: NaN in both fails"),
        pytest.param("matmul", id="MultiKernelBench: 1e-4 for every dtype"),
        pytest.param("row_moments", id="gpuemu: one atol for sums of every length"),
        pytest.param("rms_norm", id="flash-attention: a low-precision result that was lucky"),
        pytest.param("argmax", id="TritonBench-G: unseeded inputs on both sides"),
        pytest.param("leaky_relu", id="gpuemu: an atol of 0 where controls are exact"),
    ],
)
def test_what_another_checker_rejects_wrongly_is_accepted(operation: str) -> None:
    verdict = say(operation, CandidateKind.ORIGINAL)
    assert verdict.outcome is GateOutcome.ACCEPTED, verdict
    recipes = {prepared_case.case.recipe for prepared_case in prepared(operation).cases}
    assert "nonfinite" in recipes or operation in ("matmul", "row_moments", "argmax")


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
