"""Interpreted Python means what compiled Triton means."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from tests.gatecert.lanes.inside import inside_lane

WIDTH = tl.constexpr(8)


@triton.jit
def float_argument_kernel(out, x, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes) + eps.to(tl.float32))


@triton.jit
def loop_kernel(out, count, stride):
    total = tl.zeros((1,), tl.int64)
    for i in range(count):
        total += i.to(tl.int64) * stride
    tl.store(out + tl.arange(0, 1), total)


@triton.jit
def wide_loop_kernel(out, start, count):
    for i in range(start, start + count):
        tl.store(out + (i - start), i * 4)


@triton.jit
def hinted_loop_kernel(out, count):
    for i in tl.range(0, count, 2, num_stages=3):
        tl.store(out + i, i)
    for j in tl.static_range(1, 4, step=2):
        tl.store(out + j, -j)


@triton.jit
def logic_kernel(out, x, low, high, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    both = value > low and value < high
    either = value <= low or value >= high
    chained = low < value < high
    tl.store(out + lanes, both.to(tl.int32))
    tl.store(out + BLOCK + lanes, either.to(tl.int32))
    tl.store(out + 2 * BLOCK + lanes, (not both).to(tl.int32))
    tl.store(out + 3 * BLOCK + lanes, chained.to(tl.int32))


@triton.jit
def extremes_kernel(out, x, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    tl.store(out + lanes, max(min(value, 1.0), -1.0))


@triton.jit
def branch_kernel(out, count, FLAG: tl.constexpr):
    result = 1 if count > 3 else 2
    if FLAG and count == 5:
        result = 10
    while result < 4:
        result += 1
    tl.store(out, result)


@triton.jit
def block_branch_kernel(out, x, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    if value > 0:
        tl.store(out, 1)


@triton.jit
def helper(x, SCALE: tl.constexpr = 2):
    if SCALE == 3:
        return x
    return x * SCALE


@triton.jit
def calling_kernel(out, x, BLOCK: tl.constexpr = WIDTH):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, helper(helper(tl.load(x + lanes), SCALE=5)) + helper(1, 3))


@triton.jit
def tuple_kernel(out, pair, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(pair[0] + lanes) - tl.load(pair[1] + lanes))


@triton.jit
def option_kernel(out, bias, HAS_BIAS: tl.constexpr):
    value = tl.full((1,), 2.0, tl.float32)
    if HAS_BIAS:
        value += tl.load(bias)
    if bias is None:
        value = -value
    tl.store(out + tl.arange(0, 1), value)


@triton.jit
def assembly_kernel(out, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [lanes], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(out + lanes, value)


@triton.jit
def program_kernel(out):
    pid = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    tl.store(out + pid, pid)


@triton.jit
def last_program_kernel(out):
    tl.store(out, tl.program_id(0))


@triton.jit
def descriptor_kernel(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [R, C])
    block = source.load([0, 0])
    tl.store(out + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :], block)


@inside_lane
def test_a_python_float_is_a_float32_scalar() -> None:
    x = torch.zeros(8, dtype=torch.float16)
    out = torch.zeros(8)
    float_argument_kernel[(1,)](out, x, 1e-5, BLOCK=8)
    assert out.equal(torch.full((8,), 1e-5))


@inside_lane
def test_a_loop_variable_is_a_tensor() -> None:
    out = torch.zeros(1, dtype=torch.int64)
    loop_kernel[(1,)](out, 4, 2**30)
    assert out.item() == 6 * 2**30


@inside_lane
def test_a_loop_variable_has_the_type_of_its_bounds() -> None:
    out = torch.zeros(2, dtype=torch.int64)
    wide_loop_kernel[(1,)](out, 2**30, 2)
    assert out.tolist() == [0, 4]  # 32 bits wrap around
    wide_loop_kernel[(1,)](out, 2**40, 2)
    assert out.tolist() == [2**42, 2**42 + 4]


@inside_lane
def test_hinted_and_static_ranges_count_as_range_does() -> None:
    out = torch.full((8,), 99, dtype=torch.int32)
    hinted_loop_kernel[(1,)](out, 7)
    assert out.tolist() == [0, -1, 2, -3, 4, 99, 6, 99]


@inside_lane
def test_and_or_not_and_chains_work_element_by_element() -> None:
    x = torch.arange(-4, 4).float()
    out = torch.zeros(4, 8, dtype=torch.int32)
    logic_kernel[(1,)](out, x, -2.0, 2.0, BLOCK=8)
    inside = ((x > -2) & (x < 2)).int()
    assert out.tolist() == [t.tolist() for t in (inside, 1 - inside, 1 - inside, inside)]


@inside_lane
def test_min_and_max_work_element_by_element() -> None:
    x = torch.linspace(-3, 3, 8)
    out = torch.zeros(8)
    extremes_kernel[(1,)](out, x, BLOCK=8)
    assert out.equal(x.clamp(-1, 1))


@pytest.mark.parametrize(("count", "flag", "right"), [(5, True, 10), (5, False, 4), (2, True, 4)])
@inside_lane
def test_a_branch_follows_the_value_of_a_scalar(count: int, flag: bool, right: int) -> None:
    out = torch.zeros(1, dtype=torch.int32)
    branch_kernel[(1,)](out, count, FLAG=flag)
    assert out.item() == right


@inside_lane
def test_a_branch_on_a_block_is_an_error() -> None:
    with pytest.raises(Exception, match="neither true nor false") as caught:
        block_branch_kernel[(1,)](torch.zeros(1), torch.ones(8), BLOCK=8)
    assert interpreter.is_interpreter_failure(caught.value)


@inside_lane
def test_jitted_functions_call_each_other_with_their_defaults() -> None:
    x, out = torch.arange(8.0), torch.zeros(8)
    calling_kernel[(1,)](out, x)
    assert out.equal(x * 10 + 1)


@inside_lane
def test_a_kernel_inside_a_function_sees_the_functions_variables() -> None:
    scale = tl.constexpr(3)

    @triton.jit
    def kernel(out, x, BLOCK: tl.constexpr):
        lanes = tl.arange(0, BLOCK)
        tl.store(out + lanes, tl.load(x + lanes) * scale)

    x, out = torch.arange(8.0), torch.zeros(8)
    kernel[(1,)](out, x, BLOCK=8)
    assert out.equal(3 * x)


@inside_lane
def test_a_tuple_of_tensors_is_an_argument() -> None:
    x, y, out = torch.randn(8), torch.randn(8), torch.zeros(8)
    tuple_kernel[(1,)](out, (x, y), BLOCK=8)
    assert out.equal(x - y)


@inside_lane
def test_none_is_a_constant() -> None:
    out = torch.zeros(1)
    option_kernel[(1,)](out, None, HAS_BIAS=False)
    assert out.item() == -2
    option_kernel[(1,)](out, torch.ones(1), HAS_BIAS=True)
    assert out.item() == 3


@inside_lane
def test_every_program_of_a_grid_runs_once() -> None:
    out = torch.full((6,), -1, dtype=torch.int32)
    program_kernel[(3, 2)](out)
    assert out.tolist() == list(range(6))


@inside_lane
def test_programs_can_run_last_to_first() -> None:
    out = torch.zeros(1, dtype=torch.int32)
    last_program_kernel[(5,)](out)
    assert out.item() == 4
    with interpreter.scheduled(interpreter.ProgramOrder.REVERSED):
        last_program_kernel[(5,)](out)
    assert out.item() == 0


@inside_lane
def test_a_tensor_descriptor_pads_with_zeros_and_is_checked() -> None:
    x, out = torch.randn(6, 8), torch.ones(8, 16)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        descriptor_kernel[(1,)](out, x, 6, 8, R=8, C=16)
    assert out[:6, :8].equal(x)
    assert out[6:].eq(0).all() and out[:, 8:].eq(0).all()
    assert log.findings() == ()
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        descriptor_kernel[(1,)](out, x, 7, 8, R=8, C=16)
    assert log.findings()[0].lanes == 8


@inside_lane
def test_what_cannot_run_here_is_refused_by_name() -> None:
    with pytest.raises(interpreter.LaneRefusal, match="inline assembly"):
        assembly_kernel[(1,)](torch.zeros(8, dtype=torch.int32), BLOCK=8)
