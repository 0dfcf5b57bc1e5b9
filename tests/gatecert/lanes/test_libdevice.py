"""libdevice has bodies, for the types that CUDA's table has and no others."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from gatecert.lanes import interpreter
from tests.gatecert.lanes.inside import inside_lane

BY_TORCH = ["tanh", "erf", "erfc", "exp", "exp2", "expm1", "log", "log1p", "rsqrt", "sqrt"]
BY_TORCH += ["sin", "cos", "tan", "asinh", "atan", "floor", "ceil", "trunc", "lgamma"]


@triton.jit
def apply_kernel(out, x, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, FUNCTION(tl.load(x + lanes)))


@triton.jit
def power_kernel(out, x, y, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, libdevice.pow(tl.load(x + lanes), tl.load(y + lanes)))


@triton.jit
def square_kernel(out, x, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, libdevice.pow(tl.load(x + lanes), 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BY_TORCH)
@inside_lane
def test_a_function_is_right(name: str, dtype: torch.dtype) -> None:
    x = torch.linspace(0.1, 3.3, 64, dtype=dtype)
    out = torch.zeros(64, dtype=dtype)
    apply_kernel[(1,)](out, x, getattr(libdevice, name), BLOCK=64)
    right = getattr(torch, name)(x.double())
    assert ((out.double() - right).abs() <= 2 * torch.finfo(dtype).eps * (right.abs() + 0.1)).all()


@inside_lane
def test_a_power_takes_a_float_or_a_whole_exponent() -> None:
    x, y = torch.linspace(0.1, 3, 64), torch.linspace(-2, 2, 64)
    out = torch.zeros(64)
    power_kernel[(1,)](out, x, y, BLOCK=64)
    assert torch.allclose(out.double(), x.double() ** y.double(), rtol=1e-6)
    square_kernel[(1,)](out, x, BLOCK=64)
    assert torch.allclose(out.double(), x.double() ** 2, rtol=1e-6)


@inside_lane
def test_predicates_give_whole_numbers() -> None:
    x = torch.tensor([1.0, float("nan"), float("inf"), -1.0])
    out = torch.zeros(4, dtype=torch.int32)
    apply_kernel[(1,)](out, x, libdevice.isnan, BLOCK=4)
    assert out.ne(0).tolist() == [False, True, False, False]


@inside_lane
def test_a_type_without_a_symbol_is_an_error_as_on_a_gpu() -> None:
    x = torch.ones(4, dtype=torch.bfloat16)
    with pytest.raises(Exception) as caught:
        apply_kernel[(1,)](torch.zeros(4), x, libdevice.tanh, BLOCK=4)
    assert interpreter.is_interpreter_failure(caught.value)


@inside_lane
def test_a_function_without_a_body_is_refused_by_name() -> None:
    with pytest.raises(interpreter.LaneRefusal, match="__nv_j0f"):
        apply_kernel[(1,)](torch.zeros(4), torch.ones(4), libdevice.j0, BLOCK=4)


@inside_lane
def test_cuda_s_own_module_has_the_same_bodies() -> None:
    from triton.language.extra.cuda import libdevice as cuda

    assert cuda.tanh is libdevice.tanh
