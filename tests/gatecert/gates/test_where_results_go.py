"""Claims about running a candidate: results are found, and nothing else may be written."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gatecert.gates.execution import Execution, execute
from gatecert.lanes.records import GuardPolicy
from gatecert.oracle.cases import make_case
from gatecert.oracle.comparators import judge
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.tolerance import RoundingInterval

OPERATION = get_operation("add_rms_norm")
CASE = make_case(OPERATION, {"B": 3, "N": 5}, dtype="float32", layout="row_padded")


def right(out: Any, residual_out: Any, x: Any, residual: Any, weight: Any, eps: float) -> Any:
    z = (x + residual).double()
    residual_out.copy_(z)
    out.copy_(z * torch.rsqrt(z.square().mean(1, keepdim=True) + eps) * weight)


def run(candidate: Any) -> tuple[Execution, list[bool]]:
    inputs = make_inputs(OPERATION, CASE)
    found = execute(candidate, inputs, GuardPolicy.STRICT, OPERATION)
    if contract_violation(OPERATION, CASE, inputs, found.outputs) is not None:
        return found, []
    made = expect(OPERATION, CASE, inputs).outputs
    pairs = zip(made, found.outputs, strict=True)
    return found, [judge(RoundingInterval(), one, output).passed for one, output in pairs]


def test_results_are_read_from_destinations_whatever_is_returned() -> None:
    def returning(*args: Any) -> Any:
        right(*args)
        return args[0], args[1]

    for candidate in (right, returning):
        found, passed = run(candidate)
        assert passed == [True, True]
        assert found.changed == ()


def test_a_destination_that_is_not_written_is_no_result() -> None:
    def only_one(*args: Any) -> Any:
        spare = args[1].clone()
        right(args[0], spare, *args[2:])

    def elsewhere(*args: Any) -> Any:
        spare = [args[0].clone(), args[1].clone()]
        right(*spare, *args[2:])
        return tuple(spare)

    assert run(only_one)[1] == [True, False]
    found, _ = run(elsewhere)
    inputs = make_inputs(OPERATION, CASE)
    said = contract_violation(OPERATION, CASE, inputs, found.outputs)
    assert said == "4 outputs instead of 2"


@pytest.mark.parametrize(
    ("place", "said"), [(2, "x"), (4, "weight"), (0, "out (outside its elements)")]
)
def test_writing_anything_else_is_seen(place: int, said: str) -> None:
    def too_much(*args: Any) -> Any:
        right(*args)
        storage = args[place].untyped_storage()
        flat = torch.empty(0, dtype=torch.float32).set_(storage)
        at = args[place].shape[-1] if said.endswith(")") else 0  # in the padding of a row
        flat[at] = 7.0

    found, _ = run(too_much)
    assert found.changed == (said,)
