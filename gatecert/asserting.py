"""`assert_correct`: a case of the oracle as an assertion in a test of one's own.

    from gatecert import assert_correct

    def test_softmax_with_a_tail():
        assert_correct(softmax, "softmax/float32/B=3,N=33/contiguous/normal/seed=0")

It compares values with the float64 reference, as the oracle does; it has none of its guards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gatecert.gates.execution import results_of
from gatecert.oracle.case import parse_case
from gatecert.oracle.comparators.where_exact import judge_where_exact
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import Inputs, fresh_copy, make_inputs
from gatecert.oracle.operations import Operation, get_operation, resolve_operation
from gatecert.oracle.tolerance import RoundingInterval


def assert_correct(
    entry: Callable[..., Any],
    case: str,
    *,
    operation: Operation | str | None = None,
    intermediate: str | None = None,
    device: str = "cpu",
) -> None:
    """Call `entry` on the inputs of `case` and hold its results against the float64 reference.

    `operation` is one of your own, or `module:name` of it; built-in ones are known by the case.
    `intermediate` declares a step in lower precision, as in gatecert.toml. `device` is where the
    tensors go, in the layout of the case.

    Raises:
        AssertionError: a result is wrong; the message has the worst element.
        UsageError: it is no case of the operation.
    """
    asked = parse_case(case)
    if operation is None:
        found = get_operation(asked.operation)
    else:
        found = resolve_operation(operation) if isinstance(operation, str) else operation
    inputs = make_inputs(found, asked)
    expected = expect(found, asked, inputs, intermediate=intermediate)
    copy = _on(fresh_copy(inputs), device)
    results = tuple(
        result.cpu() if isinstance(result, torch.Tensor) else result
        for result in results_of(entry(*copy.args), copy, found)
    )
    broken = contract_violation(found, asked, inputs, results)
    if broken is not None:
        raise AssertionError(f"{case}: {broken}")
    for one, result in zip(expected.outputs, results, strict=True):
        said = judge_where_exact(RoundingInterval(), one, result)
        if not said.passed:
            at = list(said.worst_index)
            raise AssertionError(
                f"{case}: {said.mismatched} of {said.compared} elements of {one.name} are wrong; "
                f"{one.name}{at} is {result[said.worst_index].item()}, not "
                f"{one.reference[said.worst_index]} (error {said.error:.3g}, allowed "
                f"{said.allowance:.3g})"
            )


def _on(inputs: Inputs, device: str) -> Inputs:
    """The inputs on a device, each storage moved whole, so that layouts stay."""
    if device == "cpu":
        return inputs
    return Inputs(
        inputs.names,
        tuple(_moved(arg, device) if isinstance(arg, torch.Tensor) else arg for arg in inputs.args),
        inputs.sha256,
    )


def _moved(tensor: torch.Tensor, device: str) -> torch.Tensor:
    length = tensor.untyped_storage().nbytes() // tensor.element_size()
    whole = tensor.as_strided((length,), (1,), 0).to(device)
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
