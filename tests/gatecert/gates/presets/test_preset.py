"""Claims about presets: each is its source's check, holes included."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

import pytest
import torch

from gatecert.errors import UsageError
from gatecert.gates.presets.data import cases_of, load_presets
from gatecert.gates.presets.gate import PreparedPreset, _broadcast, get_preset, presets
from gatecert.gates.records import GateOutcome, Reason
from gatecert.oracle.comparators import Absolute, AllClose
from gatecert.oracle.comparators import judge as compare
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Tensor, operation
from gatecert.oracle.values import RECIPES
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import UNRUNNABLE, WRONG, Judge, left_unwritten, mutated

NAMES = [preset.name for preset in presets()]
ALL = ("float32", "float16", "bfloat16")
Cube: TypeAlias = Annotated[torch.Tensor, Tensor["G B N"]]


def prepared(name: str, dtypes: tuple[str, ...] = ALL, op: str = "softmax") -> PreparedPreset:
    """The preset bound to a softmax that is not called."""
    return get_preset(name).prepare(Subject("s", "m:f", op, dtypes=dtypes), seed=0, quick=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_right_kernel_is_accepted_and_a_wrong_one_rejected(judge: Judge, name: str) -> None:
    assert judge(name).outcome is GateOutcome.ACCEPTED
    wrong = judge(name, files=WRONG)
    assert (wrong.outcome, wrong.reason) == (GateOutcome.REJECTED, Reason.VALUES)
    assert wrong.worst is not None and wrong.worst.error is not None
    assert wrong.worst.error > wrong.worst.allowance
    assert wrong.case.startswith("softmax/float32/")


def test_a_nan_is_rejected_as_one(judge: Judge) -> None:
    said = judge("kernelbench", files=mutated("x / tl.sum(x, axis=0)", "x * float('nan')"))
    assert (said.outcome, said.reason) == (GateOutcome.REJECTED, Reason.NONFINITE)
    assert said.worst is not None and said.worst.error is None


def test_what_a_candidate_raises_counts_unless_the_lane_raised_it(judge: Judge) -> None:
    raises = mutated("    x = x.contiguous()", "    raise ValueError('no such shape')")
    said = judge("kernelbench-v0", files=raises)
    assert (said.outcome, said.reason) == (GateOutcome.REJECTED, Reason.RAISED)
    assert judge("kernelbench-v0", files=UNRUNNABLE).outcome is GateOutcome.ERROR


def test_output_left_unwritten_gets_the_same_verdict_in_every_process(judge: Judge) -> None:
    """Freed memory that holds the process's own number would show in the output's bits."""
    first, second = (judge("kernelbench", files=left_unwritten()) for _ in range(2))
    assert first.outcome is GateOutcome.REJECTED
    assert (first.worst, first.bits) == (second.worst, second.bits)


def test_the_tail_mask_of_a_row_is_invisible_at_an_aligned_size(judge: Judge) -> None:
    files = mutated('other=-float("inf")', "other=0.0")
    assert judge("allclose-one-shape", files=files).outcome is GateOutcome.ACCEPTED
    assert judge("gpuemu", files=files).outcome is GateOutcome.REJECTED


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("op", [op.name for op in operations()])
def test_every_built_in_operation_has_inputs_and_a_reference(name: str, op: str) -> None:
    gate = prepared(name, op=op)
    assert gate.trials
    for trial in gate.trials:
        assert trial.case.operation == op
        assert all(torch.tensor(out.reference).isfinite().all() for out in trial.expected.outputs)


def test_the_kernelbenches_draw_five_seeds_as_theirs_do() -> None:
    torch.manual_seed(42)
    seeds = [int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(5)]
    assert [trial.case.seed for trial in prepared("kernelbench-v0").trials] == seeds


@pytest.mark.parametrize(
    ("name", "dtypes", "recipe", "cases"),
    [
        ("allclose-one-shape", {"float32"}, "normal", 1),
        ("kernelbench-v0", {"float32"}, "normal", 5),
        ("kernelbench", set(ALL), "uniform01", 15),
        ("gpuemu", {"float32", "float16"}, "uniform10", 30),
    ],
)
def test_inputs_are_those_of_the_source(
    name: str, dtypes: set[str], recipe: str, cases: int
) -> None:
    made = [trial.case for trial in prepared(name).trials]
    assert {case.dtype for case in made} == dtypes
    assert {case.recipe for case in made} == {recipe}
    assert len(made) == cases


def test_the_first_dtype_is_the_subjects_own() -> None:
    (trial,) = prepared("allclose-one-shape", ("bfloat16", "float32")).trials
    assert trial.case.dtype == "bfloat16"


def test_another_run_seed_gives_other_inputs() -> None:
    gate, subject = get_preset("gpuemu"), Subject("s", "m:f", "softmax")
    first, second = (gate.prepare(subject, seed=seed, quick=False) for seed in (0, 1))
    assert {t.inputs.sha256 for t in first.trials}.isdisjoint(
        t.inputs.sha256 for t in second.trials
    )


@pytest.mark.parametrize(
    ("name", "op", "dtype", "comparator"),
    [
        (
            "allclose-one-shape",
            "softmax",
            "float16",
            AllClose(1e-2, 1e-2, "reference", False, "output"),
        ),
        (
            "kernelbench-v0",
            "softmax",
            "float32",
            AllClose(1e-2, 1e-2, "candidate", False, "output"),
        ),
        ("kernelbench", "matmul", "float32", AllClose(1e-4, 1e-4, "candidate", False, "output")),
        ("kernelbench", "matmul", "float16", AllClose(1e-2, 1e-2, "candidate", False, "output")),
        ("gpuemu", "softmax", "float32", Absolute(1e-5, "output_only", True)),
        ("gpuemu", "softmax", "float16", Absolute(2e-2, "output_only", True)),
        ("gpuemu", "matmul", "float16", Absolute(1e-2, "output_only", True)),
        ("gpuemu", "cross_entropy", "float32", Absolute(1e-2, "output_only", True)),
    ],
)
def test_limits_are_those_of_the_source(
    name: str, op: str, dtype: str, comparator: AllClose | Absolute
) -> None:
    assert get_preset(name).data.comparator_for(op, dtype) == comparator


def test_the_eager_reference_is_computed_in_the_tested_dtype() -> None:
    trial = prepared("kernelbench", ("bfloat16",)).trials[0]
    eager = torch.softmax(trial.inputs.args[0], dim=1)
    assert eager.dtype is torch.bfloat16
    (expected,) = trial.expected.outputs
    assert torch.equal(torch.from_numpy(expected.reference), eager.double())


@pytest.mark.parametrize(
    ("name", "reference", "candidate", "passes"),
    [
        ("allclose-one-shape", float("nan"), float("nan"), False),
        ("kernelbench", float("inf"), float("inf"), True),
        ("kernelbench", float("inf"), 1.0, False),
        # gpuemu's hole: a finite output where the reference is NaN; and its false alarms.
        ("gpuemu", float("nan"), 1.0, True),
        ("gpuemu", float("nan"), float("nan"), False),
        ("gpuemu", float("inf"), float("inf"), False),
        ("gpuemu", 1.0, float("nan"), False),
    ],
)
def test_nan_and_infinity_are_judged_as_the_source_does(
    name: str, reference: float, candidate: float, passes: bool
) -> None:
    gate = prepared(name, ("float32",))
    (expected,) = gate.trials[0].expected.outputs
    values = torch.from_numpy(expected.reference)
    spoilt = values.clone()
    spoilt[0, 0] = reference
    output = values.float()
    output[0, 0] = candidate
    comparator = gate.data.comparator_for("softmax", "float32")
    assert compare(comparator, replace(expected, reference=spoilt.numpy()), output).passed is passes


def test_only_the_one_shape_check_lets_a_shape_broadcast() -> None:
    gate = prepared("allclose-one-shape")
    (expected,) = gate.trials[0].expected.outputs
    right = torch.from_numpy(expected.reference).float()[None]
    reference, output = _broadcast(expected, right)
    assert compare(gate.data.comparator, reference, output).passed
    shape_checks = {name: data.shape_check for name, data in load_presets().preset.items()}
    assert shape_checks == dict.fromkeys(NAMES, True) | {"allclose-one-shape": False}


def test_a_wrong_shape_is_rejected_where_the_source_checks_it(judge: Judge) -> None:
    files = mutated("    return y\n", "    return y[None]\n")
    assert judge("allclose-one-shape", files=files).outcome is GateOutcome.ACCEPTED
    said = judge("kernelbench", files=files)
    assert (said.outcome, said.reason) == (GateOutcome.REJECTED, Reason.CONTRACT)


def test_aligned_sizes_are_multiples_of_sixteen_for_every_operation() -> None:
    for op in operations():
        for case in cases_of(get_preset("kernelbench").data, op, ALL, {}, 0):
            # Batches, heads and their groups, and dims that have no aligned size (a window).
            fixed = {dim for dim, few in op.sizes.items() if all(size % 16 for size in few)}
            free = fixed | (set("BHG") if len(case.dims) >= 4 else set())
            assert all(size % 16 == 0 for dim, size in case.dims if dim not in free), case.id


def test_an_operation_of_the_users_own_gets_aligned_sizes_by_the_rule() -> None:
    @operation()
    def scaled(x: Cube) -> Cube:
        return x * 2.0

    (case,) = cases_of(get_preset("allclose-one-shape").data, scaled, ("float32",), {}, 0)
    assert case.sizes == {"G": 2, "B": 64, "N": 64}


def test_head_sizes_are_the_teams_own_where_it_names_them() -> None:
    op = get_operation("attention")
    data = get_preset("kernelbench").data
    assert {case.sizes["D"] for case in cases_of(data, op, ALL, {"D": (40, 64)}, 0)} == {64}
    assert {case.sizes["D"] for case in cases_of(data, op, ALL, {"D": (40,)}, 0)} == {40}


def test_a_preset_says_where_it_does_not_apply() -> None:
    assert "no operation" in str(get_preset("gpuemu").applies_to(Subject("s", "m:f")))
    half_only = Subject("s", "m:f", "softmax", dtypes=("float16",))
    assert get_preset("kernelbench-v0").applies_to(half_only) == (
        "kernelbench-v0 checks float32 only"
    )
    assert get_preset("kernelbench").applies_to(half_only) is None


def test_every_preset_gives_source_date_and_five_axes() -> None:
    for preset in presets():
        assert preset.data.source and preset.data.as_of.startswith("20")
        assert [*preset.data.axes()] == ["inputs", "shapes", "reference", "comparator", "protocol"]
        assert preset.data.inputs in RECIPES
        assert preset.data.shapes in load_presets().shapes


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'gpuemu'"):
        get_preset("gpuemo")


def test_a_check_that_computes_in_the_result_s_dtype_is_not_asked_where_torch_cannot() -> None:
    subject = Subject("q", "m:f", "quantize_fp8", dtypes=("float32",))
    gate = get_preset("allclose-one-shape")
    assert gate.applies_to(subject) == (
        "it compares in the result's dtype, and torch computes nothing in float8_e4m3fn"
    )
    assert gate.applies_to(Subject("q", "m:f", "quantize_int8", dtypes=("float32",))) is None
