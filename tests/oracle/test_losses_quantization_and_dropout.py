"""Claims about operations that choose, move, round or drop values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gatecert.oracle.case import Case
from gatecert.oracle.comparators import judge
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.operations.dropout import uniform
from gatecert.oracle.tolerance import RoundingInterval


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_silu_is_that_of_torch() -> None:
    x = normal(3, 50) * 20
    found = get_operation("silu").reference(x)
    assert torch.allclose(found, torch.nn.functional.silu(x), rtol=2.0**-48, atol=0.0)


def test_the_gradient_of_an_ignored_row_is_zero_and_of_others_that_of_torch() -> None:
    logits, grad = normal(4, 7).requires_grad_(), normal(4)
    target = torch.tensor([6, -100, 0, 3])
    losses = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    (wanted,) = torch.autograd.grad(losses, logits, grad)
    found = get_operation("cross_entropy_backward").reference(logits.detach(), target, grad)
    assert torch.allclose(found, wanted, rtol=0.0, atol=1e-14)
    assert not found[1].any()
    assert found[0].all()


def test_a_gradient_at_the_target_alone_is_rejected() -> None:
    operation = get_operation("cross_entropy_backward")
    case = Case("cross_entropy_backward", (("B", 3), ("V", 65)), "float32")
    inputs = make_inputs(operation, case)
    _, target, grad = inputs.args
    (made,) = expect(operation, case, inputs).outputs
    only_target = -torch.nn.functional.one_hot(target.clamp(min=0), 65) * grad[:, None]
    assert not judge(RoundingInterval(), made, only_target).passed


def test_turning_by_an_angle_and_back_gives_the_values_again() -> None:
    rope = get_operation("rope").reference
    x, angle = normal(2, 3, 5, 8), normal(5, 4)
    there = rope(x, angle.cos(), angle.sin())
    assert not torch.allclose(there, x)
    assert torch.allclose(rope(there, angle.cos(), -angle.sin()), x, rtol=0.0, atol=1e-14)


def test_infinities_and_nan_arrive_where_a_copy_puts_them() -> None:
    operation = get_operation("transpose")
    case = Case("transpose", (("M", 4), ("N", 3)), "float16", recipe="nonfinite")
    inputs = make_inputs(operation, case)
    (made,) = expect(operation, case, inputs).outputs
    (x,) = inputs.args
    assert judge(RoundingInterval(), made, x.T).passed
    finite = x.T.nan_to_num(0.0, 0.0, 0.0)
    assert not judge(RoundingInterval(), made, finite).passed


def test_a_row_of_zeros_has_codes_of_zero_and_the_scale_of_eps() -> None:
    x = normal(2, 5)
    x[0] = 0.0
    values, scale = get_operation("quantize_int8").reference(x, eps=1e-10)
    assert not values[0].any()
    assert scale[0] == 1e-10 / 127
    assert values[1].abs().max() == pytest.approx(127)


@pytest.mark.parametrize("rounding", ["nearest even", "nearest, halves up"])
def test_codes_rounded_to_the_nearest_are_accepted(rounding: str) -> None:
    assert judged_codes(lambda x: x.round() if rounding == "nearest even" else (x + 0.5).floor())


def test_codes_cut_towards_zero_are_rejected() -> None:
    assert not judged_codes(torch.trunc)


def judged_codes(rounded: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    operation = get_operation("quantize_int8")
    case = Case(
        "quantize_int8", (("B", 3), ("N", 129)), "bfloat16", "contiguous", "ties", (("eps", 1e-10),)
    )
    inputs = make_inputs(operation, case)
    x, eps = inputs.args
    # A row of one value, and below it halves and quarters of that.
    x[:, 1::3] /= 2
    x[:, 2::3] /= 4
    codes, _ = expect(operation, case, inputs).outputs
    scale = x.float().abs().amax(1).clamp(min=eps) / 127
    return judge(RoundingInterval(), codes, rounded(x.float() / scale[:, None]).char()).passed


def test_codes_times_scales_come_near_what_was_quantised() -> None:
    x = normal(4, 33)
    values, scale = get_operation("quantize_int8").reference(x, eps=1e-10)
    back = get_operation("dequantize_int8").reference(values.round(), scale)
    assert ((back - x).abs() <= scale[:, None] / 2 * (1 + 1e-12)).all()


def test_the_first_word_is_that_of_the_published_test_vector() -> None:
    # Random123's known answer for Philox-4x32-10, counter and key zero: 6627e8d5 e169c58d ...
    (found,) = uniform(0, np.array([0], np.uint64))
    assert found == np.float32(0x6627E8D5) * np.float32(4.6566127342e-10)


def test_a_higher_word_of_offset_or_seed_gives_other_numbers() -> None:
    places = np.arange(64, dtype=np.uint64)
    streams = [
        uniform(seed, places + np.uint64(start)).tobytes()
        for seed in (0, 1, 2**32)
        for start in (0, 64, 2**32)
    ]
    assert len(set(streams)) == len(streams)


def test_dropout_keeps_the_declared_share_and_its_mean() -> None:
    x = torch.ones(300, 200, dtype=torch.float64)
    y = get_operation("dropout").reference(x, p=0.3, seed=7)
    # Five standard deviations of a share of 60,000.
    assert float((y != 0).double().mean()) == pytest.approx(0.7, abs=5 * (0.21 / 60000) ** 0.5)
    assert set(y.unique().tolist()) == {0.0, 1 / 0.7}
    assert torch.equal(y, get_operation("dropout").reference(x, p=0.3, seed=7))
    assert not torch.equal(y, get_operation("dropout").reference(x, p=0.3, seed=8))
