"""Claims about grouped and backward attention, batched products and causal convolution."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators import judge
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.tolerance import RoundingInterval

GROUPED = (("B", 2), ("G", 3), ("H", 2), ("S", 9), ("D", 24), ("T", 13))
BACKWARD = (("B", 1), ("H", 2), ("S", 33), ("D", 40), ("T", 65))


def inputs_of(
    operation: str, dims: tuple[tuple[str, int], ...], **scalars: float
) -> list[torch.Tensor | int]:
    case = Case(operation, dims, "float32", scalars=tuple(scalars.items()))
    args = make_inputs(get_operation(operation), case).args
    return [arg.double() if isinstance(arg, torch.Tensor) else arg for arg in args]


@pytest.mark.parametrize("causal", [0, 1])
def test_grouped_query_attention_agrees_with_torch(causal: int) -> None:
    q, k, v, flag = inputs_of("attention_grouped_query", GROUPED, causal=causal)
    wanted = functional.scaled_dot_product_attention(q, k, v, is_causal=bool(flag), enable_gqa=True)
    found = get_operation("attention_grouped_query").reference(q, k, v, causal=flag)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-13)


def test_the_query_heads_of_a_group_see_one_head_of_keys() -> None:
    reference = get_operation("attention_grouped_query").reference
    q, k, v, _ = inputs_of("attention_grouped_query", GROUPED, causal=0)
    before = reference(q, k, v, causal=0)
    v[:, 1] += 1.0
    after = reference(q, k, v, causal=0)
    moved = (after - before).abs().amax((0, 2, 3)) > 0
    assert moved.tolist() == [False, False, False, True, True, True]


@pytest.mark.parametrize("causal", [0, 1])
def test_gradients_of_attention_agree_with_those_of_torch(causal: int) -> None:
    *tensors, dout, flag = inputs_of("attention_backward", BACKWARD, causal=causal)
    leaves = [tensor.requires_grad_() for tensor in tensors]
    out = functional.scaled_dot_product_attention(*leaves, is_causal=bool(flag))
    wanted = torch.autograd.grad(out, leaves, dout)
    found = get_operation("attention_backward").reference(*tensors, dout, causal=flag)
    for mine, torchs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=0, atol=1e-12)


def test_a_key_that_no_query_sees_has_no_gradient_and_no_tolerance() -> None:
    operation = get_operation("attention_backward")
    case = Case("attention_backward", BACKWARD, "float32", scalars=(("causal", 1.0),))
    _, dk, dv = expect(operation, case, make_inputs(operation, case)).outputs
    for made in (dk, dv):
        assert (made.reference[:, :, 33:] == 0).all()
        assert (made.shadow[:, :, 33:] == 0).all()
        assert (made.shadow[:, :, :33] > 0).all()


def gradients_with(
    round_step: torch.dtype, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """In float32, but weights, their gradient and the output rounded as tensor cores take them."""

    def rounded(values: torch.Tensor) -> torch.Tensor:
        return values.to(round_step).float()

    scale = q.shape[-1] ** -0.5
    p = torch.softmax(q @ k.mT * scale, -1)
    out = rounded(rounded(p) @ v)
    ds = rounded(p * (dout @ v.mT - (out * dout).sum(-1, keepdim=True)))
    return ds @ k * scale, ds.mT @ q * scale, rounded(p).mT @ dout


@pytest.mark.parametrize("recipe", ["normal", "uniform01", "rising"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_from_16_bit_weights_pass_only_where_that_is_declared(
    dtype: torch.dtype, recipe: str
) -> None:
    operation = get_operation("attention_backward")
    tested = str(dtype).removeprefix("torch.")
    case = Case("attention_backward", BACKWARD, tested, recipe=recipe, scalars=(("causal", 0.0),))
    inputs = make_inputs(operation, case)
    found = gradients_with(dtype, *(arg.float() for arg in inputs.args[:4]))
    results = [result.to(dtype) for result in found]

    def passed(intermediate: str | None) -> list[bool]:
        made = expect(operation, case, inputs, intermediate=intermediate).outputs
        return [
            judge(RoundingInterval(), output, result).passed
            for output, result in zip(made, results, strict=True)
        ]

    assert passed("input") == [True, True, True]
    assert not all(passed(None))


def test_a_convolution_sees_only_the_last_positions() -> None:
    dims = (("B", 2), ("C", 3), ("S", 11), ("W", 3))
    x, weight, bias, _ = inputs_of("causal_conv1d", dims, silu=0)
    reference = get_operation("causal_conv1d").reference
    before = reference(x, weight, bias, silu=0)
    x[:, :, 5] += 1.0
    moved = (reference(x, weight, bias, silu=0) - before).abs().amax((0, 1)) > 0
    assert moved.nonzero().flatten().tolist() == [5, 6, 7]


def test_silu_is_applied_where_the_flag_says_so() -> None:
    dims = (("B", 1), ("C", 2), ("S", 7), ("W", 4))
    x, weight, bias, _ = inputs_of("causal_conv1d", dims, silu=0)
    reference = get_operation("causal_conv1d").reference
    plain = reference(x, weight, bias, silu=0)
    activated = reference(x, weight, bias, silu=1)
    torch.testing.assert_close(activated, functional.silu(plain), rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ["attention_grouped_query", "attention_backward"])
def test_causal_and_full_attention_are_both_among_the_cases(name: str) -> None:
    cases = cases_for(get_operation(name), dtypes=("float32",))
    assert {dict(case.scalars)["causal"] for case in cases[:8]} == {0.0, 1.0}
