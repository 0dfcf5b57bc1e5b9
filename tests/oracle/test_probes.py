# ruff: noqa: F722 (named dims are not types)
"""Operations that lie are refused before any kernel is judged by them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from gatecert.errors import EnvironmentFailure
from gatecert.gates.oracle import OracleGate
from gatecert.oracle.cases import cases_for, make_case
from gatecert.oracle.exact import selecting
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.probes import check_operation
from gatecert.oracle.schema import Operation, Scalar, Seed, Tensor, operation
from gatecert.oracle.strategies import RELATIONS
from gatecert.subjects import Subject

CALLS: list[None] = []


def made(function: Callable[..., Any], **said: Any) -> Operation:
    def rows(x: Tensor["B N"]) -> Tensor["B N"]:
        return function(x)

    return operation(**said)(rows)


def probed(found: Operation) -> None:
    check_operation(found, make_case(found, {"B": 3, "N": 37}, dtype="float32"))


def refused(found: Operation, said: str) -> None:
    with pytest.raises(EnvironmentFailure, match=re.escape(said)):
        probed(found)


def test_a_reference_that_draws_random_numbers_is_refused() -> None:
    refused(made(lambda x: x * (torch.rand_like(x) > 0.1)), "two calls of its reference")


def test_a_reference_that_remembers_is_refused() -> None:
    def counts(x: torch.Tensor) -> torch.Tensor:
        CALLS.append(None)
        return x * len(CALLS)

    refused(made(counts), "two calls of its reference")


def test_a_reference_that_draws_by_its_seed_is_right() -> None:
    @operation(seed=Seed(), p=Scalar(0.1, 0.9))
    def drops(x: Tensor["B N"], p: float, seed: int) -> Tensor["B N"]:
        kept = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) > p
        return x * kept

    probed(drops)


def test_a_reference_of_nan_repeats() -> None:
    probed(made(lambda x: torch.where(x > 0, x, torch.nan)))


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda x: torch.exp(x) * (1 + 1e-9), "disagree"),
        (lambda x: torch.exp(x).float().double(), "disagree"),
        (lambda x: torch.exp(x).where(x < 1, torch.nan), "disagree"),
        (lambda x: torch.exp(x).float(), "returned float32"),
        (lambda x: torch.exp(x)[:1], "returned shapes [(1, 37)]"),
    ],
)
def test_a_second_formulation_that_disagrees_is_refused(
    second: Callable[..., Any], said: str
) -> None:
    refused(made(torch.exp, second=second), said)


def test_a_second_formulation_may_round_otherwise() -> None:
    probed(made(torch.exp, second=lambda x: torch.exp(x / 3) ** 3))


def test_a_claim_of_selection_is_held_against_the_inputs() -> None:
    refused(made(lambda x: x.cumsum(1), exact=selecting()), "is none of its inputs")
    probed(made(lambda x: x.flip(1).roll(3, 0), exact=selecting()))
    probed(made(lambda x: torch.where(x > 0, x, 0.0), exact=selecting()))


def prepared(found: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatecert.gates.oracle.gate.resolve_operation", lambda spec: found)
    OracleGate().prepare(Subject("s", "m:f", "m:rows"), seed=0, quick=True)


def test_a_shadow_so_large_that_anything_passes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    too_large = made(lambda x: 2 * x, shadow=lambda y, x: y.abs() * 1e8 + 1.0)
    with pytest.raises(EnvironmentFailure, match="its shadow is too large"):
        prepared(too_large, monkeypatch)
    prepared(made(lambda x: 2 * x, shadow=lambda y, x: y.abs() * 1e3), monkeypatch)


def test_a_reference_that_is_nan_everywhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFailure, match="its reference is NaN in every place of 'output'"):
        prepared(made(lambda x: torch.log(-x.abs() - 1)), monkeypatch)
    prepared(made(torch.sqrt), monkeypatch)


@pytest.mark.parametrize("found", operations(), ids=lambda found: found.name)
def test_built_in_operations_are_what_they_declare(found: Operation) -> None:
    for case in cases_for(found, dtypes=("float32",), strategy=RELATIONS)[:2]:
        check_operation(found, case)


def test_a_built_in_operation_with_a_wrong_second_formulation_is_refused() -> None:
    softmax = get_operation("softmax")
    wrong = replace(softmax, second=lambda x: torch.softmax(x * 1.000001, 1))
    case = cases_for(wrong, dtypes=("float32",), strategy=RELATIONS)[0]
    with pytest.raises(EnvironmentFailure, match="its second formulation disagree on case softmax"):
        check_operation(wrong, case)
