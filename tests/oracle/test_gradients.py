# ruff: noqa: F722, F821, UP037 (named dims are not types)
from __future__ import annotations

import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.cases import cases_for
from gatecert.oracle.expectation import expect
from gatecert.oracle.gradients import grad_of
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.metamorphic import check_reference
from gatecert.oracle.operations import get_operation
from gatecert.oracle.schema import Operation, Tensor, operation


@operation()
def shifted(x: Tensor["B N"], bias: Tensor["N"] | None = None) -> Tensor["B N"]:
    return x**2 if bias is None else x**2 + 3 * bias


def in_float64(operation: Operation, args: tuple[object, ...]) -> tuple[torch.Tensor, ...]:
    wide = [arg.double() if isinstance(arg, torch.Tensor) else arg for arg in args]
    return operation.returned(args, operation.call(operation.reference, wide))


def test_the_gradient_of_layer_norm_is_what_is_written_out_for_it() -> None:
    by_hand = get_operation("layer_norm_backward")
    made = grad_of(get_operation("layer_norm"), wrt="x weight bias")
    assert [spec.name for spec in made.inputs] == ["dy", "x", "weight", "bias", "eps"]
    assert [spec.name for spec in made.outputs] == ["dx", "dweight", "dbias"]
    for case in cases_for(made, dtypes=("float32",), strategy="quick"):
        dy, x, weight, bias, eps = make_inputs(made, case).args
        found = in_float64(made, (dy, x, weight, bias, eps))
        wanted = in_float64(by_hand, (dy, x, weight, eps))
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_an_upstream_gradient_is_never_all_ones_whatever_the_recipe() -> None:
    made = grad_of(get_operation("softmax"), wrt="x")
    for case in cases_for(made, dtypes=("float32", "bfloat16")):
        upstream = make_inputs(made, case).args[0]
        assert upstream.numel() < 3 or len(upstream.unique()) > 2, case.id
        assert not (upstream == 1).all()


def test_a_gradient_for_an_optional_input_is_there_where_that_is() -> None:
    made = grad_of(shifted, wrt="bias x")
    seen = set()
    for case in cases_for(made, dtypes=("float32",)):
        inputs = make_inputs(made, case)
        dy, x, bias = inputs.args
        outputs = {one.name: one.reference for one in expect(made, case, inputs).outputs}
        assert set(outputs) == ({"dx"} if bias is None else {"dbias", "dx"})
        torch.testing.assert_close(torch.from_numpy(outputs["dx"]), 2 * x.double() * dy.double())
        if bias is not None:
            wanted = 3 * dy.double().sum(0)
            torch.testing.assert_close(torch.from_numpy(outputs["dbias"]), wanted)
        seen.add(case.absent)
    assert seen == {(), ("bias",)}


def test_a_gradient_is_held_to_its_being_linear_in_the_upstream_one() -> None:
    made = grad_of(get_operation("softmax"), wrt="x")
    assert [scaling.tensors for scaling in made.relations.scalings] == [("dy",)]
    check_reference(made, cases_for(made, dtypes=("float32",), strategy="relations")[0])


def test_destinations_are_no_arguments_of_a_gradient() -> None:
    made = grad_of(get_operation("add_rms_norm"), wrt="residual")
    assert [s.name for s in made.tensors] == ["dout", "dresidual_out", "x", "residual", "weight"]
    case = cases_for(made, dtypes=("float32",))[0]
    (only,) = expect(made, case, make_inputs(made, case)).outputs
    assert only.shape == (case.sizes["B"], case.sizes["N"])


@pytest.mark.parametrize(
    ("forward", "wrt", "message"),
    [
        ("softmax", "y", "no gradient with respect to 'y'; there is x"),
        ("softmax", "", "no gradient with respect to ''; there is x"),
        ("embedding", "index", "no gradient with respect to 'index'; there is weight"),
        ("argmax", "x", "result 'output' of argmax is no float"),
        ("attention_varlen", "q", "result 'lse' of attention_varlen is there in some cases only"),
    ],
)
def test_what_has_no_gradient_is_refused(forward: str, wrt: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        grad_of(get_operation(forward), wrt=wrt)
