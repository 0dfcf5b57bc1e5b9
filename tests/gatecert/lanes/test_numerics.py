"""Arithmetic, casts, reductions and products agree with torch, in every float type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.gatecert.lanes.inside import inside_lane

NARROW = [torch.float16, torch.bfloat16]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]
DTYPES = [torch.float32, *NARROW]
N = 64


@triton.jit
def binary_kernel(out, x, y, OPERATION: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    a, b = tl.load(x + lanes), tl.load(y + lanes)
    if OPERATION == "add":
        c = a + b
    elif OPERATION == "subtract":
        c = a - b
    elif OPERATION == "multiply":
        c = a * b
    elif OPERATION == "divide":
        c = a / b
    elif OPERATION == "maximum":
        c = tl.maximum(a, b)
    elif OPERATION == "minimum":
        c = tl.minimum(a, b)
    elif OPERATION == "where":
        c = tl.where(a > b, a, b - a)
    elif OPERATION == "negate":
        c = -a
    elif OPERATION == "abs":
        c = tl.abs(a)
    elif OPERATION == "fma":
        c = tl.fma(a, b, a)
    else:
        c = tl.clamp(a, -1.0, b)
    tl.store(out + lanes, c)


@triton.jit
def constant_kernel(out, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.full([BLOCK], 1.0, TYPE) * 0.1 + tl.full([], 3.0, TYPE))


@triton.jit
def compare_kernel(out, x, y, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    a, b = tl.load(x + lanes), tl.load(y + lanes)
    bits = (a < b).to(tl.int32) + 2 * (a <= b).to(tl.int32) + 4 * (a == b).to(tl.int32)
    bits += 8 * (a != b).to(tl.int32) + 16 * (a >= b).to(tl.int32) + 32 * (a > b).to(tl.int32)
    tl.store(out + lanes, bits)


@triton.jit
def cast_kernel(out, x, TARGET: tl.constexpr, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes).to(TARGET, fp_downcast_rounding=ROUNDING))


@triton.jit
def bitcast_kernel(out, x, TARGET: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes).to(TARGET, bitcast=True))


@triton.jit
def reduce_kernel(out, x, OPERATION: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    block = tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    if OPERATION == "sum0":
        tl.store(out + tl.arange(0, C), tl.sum(block, 0))
    elif OPERATION == "sum1":
        tl.store(out + tl.arange(0, R), tl.sum(block, 1))
    elif OPERATION == "max1":
        tl.store(out + tl.arange(0, R), tl.max(block, 1))
    elif OPERATION == "min0":
        tl.store(out + tl.arange(0, C), tl.min(block, 0))
    elif OPERATION == "argmax1":
        tl.store(out + tl.arange(0, R), tl.argmax(block, 1))
    elif OPERATION == "argmin0":
        tl.store(out + tl.arange(0, C), tl.argmin(block, 0))
    elif OPERATION == "all":
        tl.store(out, tl.sum(block))
    else:
        kept = tl.sum(block, 1, keep_dims=True)
        tl.store(out + tl.arange(0, R)[:, None] + tl.arange(0, 1)[None, :], kept)


@triton.jit
def scan_kernel(out, x, OPERATION: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    places = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    block = tl.load(x + places)
    if OPERATION == "sum1":
        result = tl.cumsum(block, 1)
    elif OPERATION == "sum0":
        result = tl.cumsum(block, 0)
    elif OPERATION == "reverse":
        result = tl.cumsum(block, 1, reverse=True)
    else:
        result = tl.cumprod(block, 1)
    tl.store(out + places, result)


@triton.jit
def dot_kernel(out, a, b, PRECISION: tl.constexpr, SIZE: tl.constexpr):
    r, c = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    x, y = tl.load(a + r * SIZE + c), tl.load(b + r * SIZE + c)
    tl.store(out + r * SIZE + c, tl.dot(x, y, input_precision=PRECISION))


@triton.jit
def default_dot_kernel(out, a, b, SIZE: tl.constexpr):
    r, c = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(out + r * SIZE + c, tl.dot(tl.load(a + r * SIZE + c), tl.load(b + r * SIZE + c)))


@triton.jit
def softmax_pair(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@triton.jit
def pair_kernel(top, total, x, BLOCK: tl.constexpr):
    block = tl.load(x + tl.arange(0, BLOCK))
    m, s = tl.reduce((block, tl.full((BLOCK,), 1.0, tl.float32)), 0, softmax_pair)
    tl.store(top, m)
    tl.store(total, s)


@triton.jit
def first_order(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence_kernel(out, a, b, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    pair = (tl.load(a + lanes), tl.load(b + lanes))
    _, states = tl.associative_scan(pair, 0, first_order)
    tl.store(out + lanes, states)


@triton.jit
def math_kernel(out, x, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, FUNCTION(tl.load(x + lanes)))


@triton.jit
def product_kernel(out, x, factor, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes) * factor)


@triton.jit
def sort_kernel(out, x, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.sort(tl.load(x + lanes)))


def normal(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "operation",
    ["add", "subtract", "multiply", "divide", "maximum", "minimum", "negate", "abs", "where"],
)
@inside_lane
def test_an_operation_rounds_once(operation: str, dtype: torch.dtype) -> None:
    x, y = normal(dtype, N), normal(dtype, N, seed=1)
    a, b = x.double(), y.double()
    right = {
        "add": a + b,
        "subtract": a - b,
        "multiply": a * b,
        "divide": a / b,
        "maximum": torch.maximum(a, b),
        "minimum": torch.minimum(a, b),
        "negate": -a,
        "abs": a.abs(),
        "where": torch.where(a > b, a, b - a),
    }[operation]
    out = torch.zeros(N, dtype=dtype)
    binary_kernel[(1,)](out, x, y, operation, BLOCK=N)
    assert out.equal(right.to(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@inside_lane
def test_clamp_and_fma_round_once(dtype: torch.dtype) -> None:
    x, y = normal(dtype, N), normal(dtype, N, seed=1).abs()
    out = torch.zeros(N, dtype=dtype)
    binary_kernel[(1,)](out, x, y, "fma", BLOCK=N)
    assert out.equal((x.double() * y.double() + x.double()).to(dtype))
    if dtype is torch.float32:
        binary_kernel[(1,)](out, x, y, "clamp", BLOCK=N)
        assert out.equal(torch.minimum(x.clamp(min=-1.0), y))


@pytest.mark.parametrize("dtype", FP8)
@inside_lane
def test_fp8_arithmetic_works_on_values_and_not_on_bits(dtype: torch.dtype) -> None:
    x, y = normal(dtype, N), normal(dtype, N, seed=1)
    out = torch.zeros(N, dtype=dtype)
    binary_kernel[(1,)](out, x, y, "add", BLOCK=N)
    assert out.float().equal((x.float() + y.float()).to(dtype).float())


@pytest.mark.parametrize("dtype", [*DTYPES, *FP8])
@inside_lane
def test_comparisons_see_values_signs_and_nan(dtype: torch.dtype) -> None:
    values = [-1.0, -0.0, 0.0, 2.0, float("nan")]
    x = torch.tensor([v for v in values for _ in values] + [0.0] * 7).to(dtype)
    y = torch.tensor(values * len(values) + [0.0] * 7).to(dtype)
    out = torch.zeros(32, dtype=torch.int32)
    compare_kernel[(1,)](out, x, y, BLOCK=32)
    a, b = x.float(), y.float()
    right = sum(
        weight * answer.int()
        for weight, answer in zip(
            (1, 2, 4, 8, 16, 32), (a < b, a <= b, a == b, a != b, a >= b, a > b), strict=True
        )
    )
    assert out.equal(right.int())


@pytest.mark.parametrize("source", [torch.float64, torch.float32, *NARROW])
@pytest.mark.parametrize("target", [torch.float64, torch.float32, *NARROW])
@inside_lane
def test_a_cast_rounds_to_nearest_even(source: torch.dtype, target: torch.dtype) -> None:
    x = (normal(torch.float64, 1024) * 100).to(source)
    out = torch.zeros(1024, dtype=target)
    cast_kernel[(1,)](out, x, triton_type(target), None, BLOCK=1024)
    assert out.equal(x.to(target))


@pytest.mark.parametrize("target", FP8)
@pytest.mark.parametrize("source", DTYPES)
@inside_lane
def test_a_cast_to_fp8_rounds_to_nearest_even_and_saturates(
    source: torch.dtype, target: torch.dtype
) -> None:
    x = torch.cat([normal(torch.float32, 60), torch.tensor([1e4, -1e5, 0.0, 1e-3])]).to(source)
    out = torch.zeros(N, dtype=target)
    cast_kernel[(1,)](out, x, triton_type(target), None, BLOCK=N)
    largest = torch.finfo(target).max
    assert out.float().equal(x.float().clamp(-largest, largest).to(target).float())


@pytest.mark.parametrize("source", FP8)
@pytest.mark.parametrize("target", DTYPES)
@inside_lane
def test_a_cast_from_fp8_is_exact(source: torch.dtype, target: torch.dtype) -> None:
    x = torch.arange(256, dtype=torch.uint8).view(source)
    out = torch.zeros(256, dtype=target)
    cast_kernel[(1,)](out, x, triton_type(target), None, BLOCK=256)
    assert torch.equal(out.nan_to_num(nan=9.0), x.to(target).nan_to_num(nan=9.0))


@pytest.mark.parametrize("target", NARROW)
@inside_lane
def test_a_cast_toward_zero_never_grows(target: torch.dtype) -> None:
    x = normal(torch.float32, 1024)
    out = torch.zeros(1024, dtype=target)
    cast_kernel[(1,)](out, x, triton_type(target), "rtz", BLOCK=1024)
    assert (out.float().abs() <= x.abs()).all()
    away = torch.nextafter(out, torch.full_like(out, float("inf")).copysign(x.to(target)))
    assert (away.float().abs() > x.abs()).all()


@inside_lane
def test_a_float_becomes_an_integer_by_truncation_and_saturation() -> None:
    x = torch.tensor([1.9, -1.9, 3e9, -3e9, float("nan"), float("inf"), 0.5, 2147483520.0])
    out = torch.zeros(8, dtype=torch.int32)
    cast_kernel[(1,)](out, x, tl.int32, None, BLOCK=8)
    assert out.tolist() == [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, 0, 2147483520]


@inside_lane
def test_a_large_float_becomes_a_large_integer() -> None:
    x = torch.tensor([2.0**62, -(2.0**62), 2.0**63 - 1024, 1e300], dtype=torch.float64)
    out = torch.zeros(4, dtype=torch.int64)
    cast_kernel[(1,)](out, x, tl.int64, None, BLOCK=4)
    assert out.tolist() == [2**62, -(2**62), 2**63 - 1024, 2**63 - 1]


@inside_lane
def test_a_bitcast_keeps_bits() -> None:
    x = normal(torch.bfloat16, N)
    out = torch.zeros(N, dtype=torch.int16)
    bitcast_kernel[(1,)](out, x, tl.int16, BLOCK=N)
    assert out.equal(x.view(torch.int16))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", ["sum0", "sum1", "max1", "min0", "all", "kept"])
@inside_lane
def test_a_reduction_agrees_with_torch(operation: str, dtype: torch.dtype) -> None:
    x = normal(dtype, 8, 16)
    wide = x.double()
    right = {
        "sum0": wide.sum(0),
        "sum1": wide.sum(1),
        "max1": wide.amax(1),
        "min0": wide.amin(0),
        "all": wide.sum().reshape(1),
        "kept": wide.sum(1),
    }[operation]
    out = torch.zeros(right.numel(), dtype=dtype)
    reduce_kernel[(1,)](out, x, operation, R=8, C=16)
    if operation in {"max1", "min0"}:
        assert out.double().equal(right)
    else:
        # A tree of 7 levels at most, each rounding a partial sum of at most sum |x|.
        allowed = 7 * torch.finfo(dtype).eps / 2 * wide.abs().sum()
        assert ((out.double() - right).abs() <= allowed).all()


@pytest.mark.parametrize("dtype", NARROW)
@inside_lane
def test_a_narrow_sum_rounds_at_every_level(dtype: torch.dtype) -> None:
    one, tiny = 1.0, torch.finfo(dtype).eps / 2
    x = torch.tensor([[one, tiny, tiny, tiny]]).to(dtype)
    out = torch.zeros(1, dtype=dtype)
    reduce_kernel[(1,)](out, x, "sum1", R=1, C=4)
    assert out.item() == torch.tensor(one + 2 * tiny).to(dtype).item()


@pytest.mark.parametrize("dtype", DTYPES)
@inside_lane
def test_the_first_of_equal_extremes_is_found(dtype: torch.dtype) -> None:
    x = torch.tensor([[1, 3, 3, 0], [2, 2, 2, 2]]).to(dtype)
    out = torch.zeros(2, dtype=torch.int32)
    reduce_kernel[(1,)](out, x, "argmax1", R=2, C=4)
    assert out.tolist() == [1, 0]
    out = torch.zeros(4, dtype=torch.int32)
    reduce_kernel[(1,)](out, x, "argmin0", R=2, C=4)
    assert out.tolist() == [0, 1, 1, 0]


@inside_lane
def test_max_and_maximum_ignore_nan() -> None:
    nan = float("nan")
    x = torch.tensor([[nan, 2.0, 1.0, nan], [nan, nan, nan, nan]])
    out = torch.zeros(2)
    reduce_kernel[(1,)](out, x, "max1", R=2, C=4)
    assert out[0] == 2 and out[1].isnan()
    binary_kernel[(1,)](out, torch.tensor([nan, 1.0]), torch.tensor([2.0, nan]), "maximum", BLOCK=2)
    assert out.tolist() == [2, 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", ["sum0", "sum1", "reverse", "product"])
@inside_lane
def test_a_scan_agrees_with_torch(operation: str, dtype: torch.dtype) -> None:
    x = normal(dtype, 4, 8)
    wide = x.double()
    right = {
        "sum0": wide.cumsum(0),
        "sum1": wide.cumsum(1),
        "reverse": wide.flip(1).cumsum(1).flip(1),
        "product": wide.cumprod(1),
    }[operation]
    scale = wide.abs().cumprod(1) if operation == "product" else wide.abs().sum()
    out = torch.zeros(4, 8, dtype=dtype)
    scan_kernel[(1,)](out, x, operation, R=4, C=8)
    assert ((out.double() - right).abs() <= 8 * torch.finfo(dtype).eps * scale).all()


@inside_lane
def test_a_reduction_of_pairs_calls_the_kernels_own_function() -> None:
    x = normal(torch.float32, N)
    top, total = torch.zeros(1), torch.zeros(1)
    pair_kernel[(1,)](top, total, x, BLOCK=N)
    assert top.item() == x.max().item()
    assert torch.allclose(top.double() + total.double().log(), x.double().logsumexp(0), atol=1e-6)


@inside_lane
def test_a_scan_of_pairs_keeps_the_order_of_a_recurrence() -> None:
    a, b = normal(torch.float32, N).tanh(), normal(torch.float32, N, seed=1)
    out = torch.zeros(N)
    recurrence_kernel[(1,)](out, a, b, BLOCK=N)
    state, right = 0.0, []
    for factor, term in zip(a.double().tolist(), b.double().tolist(), strict=True):
        state = state * factor + term
        right.append(state)
    assert torch.allclose(out.double(), torch.tensor(right, dtype=torch.float64), atol=1e-5)


@pytest.mark.parametrize("dtype", [*DTYPES, *FP8])
@inside_lane
def test_a_product_sums_exact_products_in_float32(dtype: torch.dtype) -> None:
    a, b = normal(dtype, 32, 32), normal(dtype, 32, 32, seed=1)
    out = torch.zeros(32, 32)
    dot_kernel[(1,)](out, a, b, "ieee", SIZE=32)
    wide_a, wide_b = a.double(), b.double()
    allowed = 32 * 2.0**-24 * (wide_a.abs() @ wide_b.abs())
    assert ((out.double() - wide_a @ wide_b).abs() <= allowed).all()


@inside_lane
def test_a_product_of_bytes_is_exact() -> None:
    a = torch.randint(-128, 128, (32, 32), generator=torch.Generator().manual_seed(0))
    out = torch.zeros(32, 32, dtype=torch.int32)
    default_dot_kernel[(1,)](out, a.to(torch.int8), a.T.contiguous().to(torch.int8), SIZE=32)
    assert out.equal((a @ a.T).int())


@inside_lane
def test_tf32_is_seen_where_a_kernel_asks_for_it_and_only_there() -> None:
    a, b = normal(torch.float32, 32, 32), normal(torch.float32, 32, 32, seed=1)
    right = a.double() @ b.double()
    errors = {}
    for precision in ("ieee", "tf32"):
        out = torch.zeros(32, 32)
        dot_kernel[(1,)](out, a, b, precision, SIZE=32)
        errors[precision] = (out.double() - right).abs().max().item()
    out = torch.zeros(32, 32)
    default_dot_kernel[(1,)](out, a, b, SIZE=32)
    assert (out.double() - right).abs().max().item() == errors["ieee"] < 1e-5
    assert 1e-4 < errors["tf32"] < 1e-2


@pytest.mark.parametrize(
    "name", ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "erf", "sin", "cos"]
)
@inside_lane
def test_a_function_is_right_to_four_units_in_the_last_place(name: str) -> None:
    x = normal(torch.float32, N).abs() + 0.1
    out = torch.zeros(N)
    math_kernel[(1,)](out, x, getattr(tl.math, name), BLOCK=N)
    right = getattr(torch, name)(x.double())
    assert ((out.double() - right).abs() <= 4 * 2.0**-23 * right.abs() + 2.0**-26).all()


@inside_lane
def test_a_32_bit_product_wraps_around() -> None:
    x = torch.tensor([2**20, -(2**20), 3, 2**30], dtype=torch.int32)
    out = torch.zeros(4, dtype=torch.int32)
    product_kernel[(1,)](out, x, 2**12, BLOCK=4)
    assert out.tolist() == [0, 0, 3 * 2**12, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@inside_lane
def test_a_block_is_sorted(dtype: torch.dtype) -> None:
    x = normal(dtype, N)
    out = torch.zeros(N, dtype=dtype)
    sort_kernel[(1,)](out, x, BLOCK=N)
    assert out.equal(x.sort().values)


def triton_type(dtype: torch.dtype) -> tl.dtype:
    names = {
        torch.float64: tl.float64,
        torch.float32: tl.float32,
        torch.float16: tl.float16,
        torch.bfloat16: tl.bfloat16,
        torch.float8_e4m3fn: tl.float8e4nv,
        torch.float8_e5m2: tl.float8e5,
    }
    return names[dtype]


@inside_lane
def test_a_type_without_an_exact_counterpart_is_refused() -> None:
    from gatecert.lanes.interpreter import LaneRefusal
    from gatecert.lanes.interpreter.numerics import numpy_dtype

    assert numpy_dtype(tl.bfloat16) == np.dtype(ml_dtypes.bfloat16)
    with pytest.raises(LaneRefusal, match="fp8e4b15"):
        numpy_dtype(tl.float8e4b15)


@pytest.mark.parametrize("dtype", DTYPES)
@inside_lane
def test_constants_have_the_type_that_the_kernel_says(dtype: torch.dtype) -> None:
    out = torch.zeros(4, dtype=dtype)
    names = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}
    constant_kernel[(1,)](out, TYPE=names[dtype], BLOCK=4)
    expected = torch.tensor(0.1, dtype=dtype) + torch.tensor(3.0, dtype=dtype)
    assert out.equal(expected.expand(4))
