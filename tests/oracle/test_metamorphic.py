"""Claims about metamorphic relations: they hold of right references and not of wrong ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, TypeAlias

import pytest
import torch

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.oracle.cases import cases_for
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.equations import Call, Reading, read
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.metamorphic import RELATIONS, check_reference, equations, start
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.relations import NO_RELATIONS, Relations, additive, homogeneous
from gatecert.oracle.schema import Operation, Reference, operation, tensor
from gatecert.oracle.tolerance import RoundingInterval

Halves: TypeAlias = Annotated[torch.Tensor, tensor("B 2N")]
PerRow: TypeAlias = Annotated[torch.Tensor, tensor("B")]
EVERY = pytest.mark.parametrize("made", operations(), ids=lambda found: found.name)
DTYPES = ("float32", "float16", "bfloat16")
LAYOUTS = ("contiguous", "row_padded", "transposed")


def calls(made: Operation, *dtypes: str) -> list[Call]:
    cases = cases_for(made, dtypes=dtypes, layouts=LAYOUTS, strategy="relations", seed=3)
    return [start(made, case) for case in cases]


def results(made: Operation, function: Reference, call: Call) -> tuple[torch.Tensor, ...]:
    """What the function gives in float32, rounded to the outputs' dtypes."""
    args = [
        arg.float() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
        for arg in call.inputs.args
    ]
    parts = made.returned(args, made.call(function, args))
    rounded = [
        (part if spec.is_float else part.round()).to(torch_dtype(spec.dtype(call.case.dtype)))
        for spec, part in zip(made.outputs_of(args), parts, strict=True)
    ]
    assert contract_violation(made, call.case, call.inputs, rounded) is None
    return tuple(rounded)


def readings(made: Operation, function: Reference, *dtypes: str) -> dict[str, Reading]:
    """The worst reading of each relation."""
    worst: dict[str, Reading] = {}
    for call in calls(made, *dtypes):
        for equation in equations(made, call):
            found = read(
                made,
                equation,
                [results(made, function, term.call) for term in equation.terms],
                comparator=RoundingInterval(),
            )
            name = equation.relation
            worst[name] = max(worst.get(name, Reading()), found, key=lambda one: one.score)
    return worst


@EVERY
def test_every_built_in_operation_declares_relations_and_its_reference_keeps_them(
    made: Operation,
) -> None:
    assert made.relations != NO_RELATIONS
    started = calls(made, "float32", "bfloat16")
    assert any(equations(made, call) for call in started)
    for call in started:
        check_reference(made, call.case)


@EVERY
def test_correct_float32_arithmetic_keeps_every_relation_with_room_to_spare(
    made: Operation,
) -> None:
    for function in (made.reference, made.second):
        assert function is not None
        for relation, found in readings(made, function, *DTYPES).items():
            assert found.score <= 0.7, (relation, found)


def test_every_relation_of_the_registry_is_declared_by_some_operation() -> None:
    found = {
        equation.relation
        for made in operations()
        for call in calls(made, "float32")
        for equation in equations(made, call)
    }
    assert found == set(RELATIONS)


def softmax_over_all(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.flatten(), 0).reshape(x.shape)


def softmax_without_maximum(x: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(x.float())
    return (powers / powers.sum(1, keepdim=True)).to(x.dtype)


def softmax_padded_with_zero(x: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(x - x.amax(1, keepdim=True))
    return powers / (powers.sum(1, keepdim=True) + torch.exp(-x.amax(1, keepdim=True)))


def matmul_of_magnitudes(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.abs() @ b


def matmul_last_term_lost(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a[:, :-1] @ b[:-1]


def matmul_first_tile_twice(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b + (a[:, :32] @ b[:32] if a.shape[1] > 32 else 0)


def norm_with_a_mean_of_all_rows(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean() + eps) * weight


def rows_shifted_by_one(weight: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return weight[(index + 1) % weight.shape[0]]


def mean_of_a_whole_block(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    whole = -(-x.shape[1] // 64) * 64
    return x.sum(1), x.sum(1) / whole, x.var(1, unbiased=False) + 1


def attention_with_a_lost_key(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k[:, :, :-1].mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores, -1) @ v[:, :, :-1]


WRONG = [
    ("softmax", softmax_over_all, {"independence"}),
    ("softmax", softmax_without_maximum, {"shift"}),
    ("softmax", softmax_padded_with_zero, {"shift"}),
    ("matmul", matmul_of_magnitudes, {"additivity"}),
    ("matmul", matmul_last_term_lost, {"symmetry", "padding"}),
    ("matmul", matmul_first_tile_twice, {"symmetry"}),
    ("rms_norm", norm_with_a_mean_of_all_rows, {"independence"}),
    ("embedding", rows_shifted_by_one, {"symmetry"}),
    ("row_moments", mean_of_a_whole_block, {"scaling"}),
    ("attention", attention_with_a_lost_key, {"symmetry"}),
]
PLANTED = pytest.mark.parametrize(
    ("name", "wrong", "by"), WRONG, ids=[wrong.__name__ for _, wrong, _ in WRONG]
)


@PLANTED
def test_a_wrong_reference_is_found_without_any_other(
    name: str, wrong: Reference, by: set[str]
) -> None:
    made = replace(get_operation(name), reference=wrong)
    with pytest.raises(EnvironmentFailure, match="breaks a relation that it declares"):
        for call in calls(made, "float32"):
            check_reference(made, call.case)


@PLANTED
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_kernel_breaks_the_relation_that_forbids_it(
    name: str, wrong: Reference, by: set[str], dtype: str
) -> None:
    made = get_operation(name)
    worst = readings(made, wrong, dtype)
    assert by <= {relation for relation, found in worst.items() if found.breach is not None}


def test_a_breach_says_what_was_done_and_where_it_shows() -> None:
    made = get_operation("matmul")
    found = readings(made, matmul_last_term_lost, "float32")["padding"].breach
    assert found is not None
    assert str(found).startswith("padding (")
    assert "more of K, filled with 0): " in str(found)
    assert found.error > found.allowance
    assert 0 < found.mismatched <= found.compared


def test_a_constant_factor_keeps_every_relation_of_a_linear_operation() -> None:
    # What relations cannot see: it is why they stand beside a reference, not in its place.
    made = get_operation("matmul")
    worst = readings(made, lambda a, b: 2 * (a @ b), "float32")
    assert all(found.breach is None for found in worst.values())


def test_a_nan_breaks_a_relation_even_where_both_sides_have_it() -> None:
    made = get_operation("softmax")
    worst = readings(made, lambda x: x * torch.nan, "float32")
    assert all(math.isinf(found.score) or found.score > 1e9 for found in worst.values())


def test_relations_that_cannot_hold_of_a_schema_are_refused() -> None:
    def half(x: Halves, k: PerRow) -> Halves:
        return x * k[:, None]

    operation(relations=Relations(symmetric="B", scalings=(homogeneous("x"),)))(half)
    for relations, says in (
        (Relations(symmetric="N"), r"relations name dim 'N', which they cannot; .* of B"),
        (Relations(independent="C"), r"relations name dim 'C'"),
        (Relations(shifted=("y",)), r"relations name tensor 'y'"),
        (Relations(scalings=(additive("x", "z"),)), r"relations name tensor 'z'"),
    ):
        with pytest.raises(UsageError, match=says):
            operation(relations=relations)(half)
