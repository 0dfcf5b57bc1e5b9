"""Every lane of every access is checked, and nothing outside a buffer is touched."""

from __future__ import annotations

import math

import pytest
import torch
import triton
import triton.language as tl

from gatecert.lanes import interpreter
from gatecert.lanes.records import Finding, FindingKind, GuardPolicy
from tests.gatecert.lanes.inside import inside_lane

POLICIES = [GuardPolicy.STRICT, GuardPolicy.LENIENT]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@triton.jit
def copy_kernel(out, x, start, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + start + lanes))


@triton.jit
def masked_copy_kernel(out, x, count, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes, mask=lanes < count))


@triton.jit
def padded_copy_kernel(out, x, count, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes, mask=lanes < count, other=7))


@triton.jit
def scalar_kernel(out, x, inside):
    tl.store(out, tl.load(x, mask=inside, other=0.0))


@triton.jit
def fill_kernel(out, value, start, BLOCK: tl.constexpr):
    tl.store(out + start + tl.arange(0, BLOCK), value)


@triton.jit
def fill_again_kernel(out, start, times):
    for _ in range(times):
        tl.store(out + start + tl.arange(0, 8), 1.0)


@triton.jit
def add_kernel(out, seen, places, values, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    place = tl.load(places + lanes)
    old = tl.atomic_add(out + place, tl.load(values + lanes))
    tl.store(seen + lanes, old)


@triton.jit
def extreme_kernel(high, low, places, values, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    place = tl.load(places + lanes)
    value = tl.load(values + lanes)
    tl.atomic_max(high + place, value)
    tl.atomic_min(low + place, value)


@triton.jit
def swap_kernel(out, seen, expected, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    old = tl.atomic_cas(out + lanes, tl.load(expected + lanes), lanes + 100)
    tl.store(seen + lanes, old)


@triton.jit
def table_kernel(out, table, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(table + row).to(tl.pointer_type(tl.float32))
    lanes = tl.arange(0, BLOCK)
    tl.store(out + row * BLOCK + lanes, tl.load(source + lanes))


@triton.jit
def words_kernel(out, x, start, BLOCK: tl.constexpr):
    words = (x + start).to(tl.pointer_type(tl.int32))
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(words + lanes))


@triton.jit
def chase_kernel(out, x, indices, count, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = lanes < count
    index = tl.load(indices + lanes, mask=inside)
    tl.store(out + lanes, tl.load(x + index, mask=inside, other=0.0), mask=inside)


def kernel_name(name: str) -> str:
    return f"{__name__}:{name}"


@pytest.mark.parametrize("dtype", FLOATS)
@inside_lane
def test_a_float_lane_past_the_end_reads_nan_and_is_found(dtype: torch.dtype) -> None:
    x, out = torch.arange(5).to(dtype), torch.zeros(8, dtype=dtype)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        copy_kernel[(1,)](out, x, 0, BLOCK=8)
    assert out[:5].equal(x)
    assert out[5:].isnan().all()
    assert log.findings() == (
        Finding(FindingKind.LOAD_OUT_OF_BOUNDS, kernel_name("copy_kernel"), "x", 3, 5),
    )


@pytest.mark.parametrize("dtype", INTEGERS)
@inside_lane
def test_an_integer_lane_past_the_end_reads_a_large_odd_number(dtype: torch.dtype) -> None:
    x, out = torch.arange(5).to(dtype), torch.zeros(8, dtype=dtype)
    with interpreter.guarded(GuardPolicy.STRICT):
        copy_kernel[(1,)](out, x, 0, BLOCK=8)
    assert out[:5].equal(x)
    assert (out[5:] % 2 == 1).all()
    assert (out[5:] > torch.iinfo(dtype).max // 4).all()


@inside_lane
def test_a_lane_before_the_start_is_found_with_its_negative_offset() -> None:
    x, out = torch.ones(8), torch.zeros(8)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        copy_kernel[(1,)](out, x, -3, BLOCK=8)
    (finding,) = log.findings()
    assert (finding.lanes, finding.first_offset) == (3, -3)
    assert out[:3].isnan().all() and out[3:].eq(1).all()


@inside_lane
def test_a_bad_load_is_finite_under_the_lenient_policy() -> None:
    x, out = torch.ones(5), torch.zeros(8)
    with interpreter.guarded(GuardPolicy.LENIENT) as log:
        copy_kernel[(1,)](out, x, 0, BLOCK=8)
    assert out.isfinite().all()
    assert log.findings()[0].lanes == 3


@pytest.mark.parametrize("policy", POLICIES)
@inside_lane
def test_a_bad_store_is_found_and_not_done(policy: GuardPolicy) -> None:
    whole = torch.full((64,), 3.0)
    alone = whole[16:24].clone()
    with interpreter.guarded(policy) as log:
        fill_kernel[(1,)](alone, 1.0, 4, BLOCK=8)
    assert alone.tolist() == [3.0] * 4 + [1.0] * 4
    assert log.findings() == (
        Finding(FindingKind.STORE_OUT_OF_BOUNDS, kernel_name("fill_kernel"), "out", 4, 8),
    )


@inside_lane
def test_a_launch_that_goes_on_long_after_a_bad_access_is_stopped() -> None:
    out = torch.zeros(8)
    with (
        interpreter.guarded(GuardPolicy.STRICT) as log,
        pytest.raises(Exception, match="10000 accesses after its first out of bounds") as stop,
    ):
        fill_again_kernel[(1,)](out, 1, 20_000)
    assert interpreter.was_stopped(stop.value)
    assert not interpreter.is_interpreter_failure(stop.value)
    assert not log.failures()
    assert log.findings()[0].lanes == 10_001


@pytest.mark.parametrize(("start", "policy"), [(0, GuardPolicy.STRICT), (1, GuardPolicy.LENIENT)])
@inside_lane
def test_a_long_launch_is_not_stopped_within_bounds_nor_under_an_external_gate(
    start: int, policy: GuardPolicy
) -> None:
    out = torch.zeros(8)
    with interpreter.guarded(policy):
        fill_again_kernel[(1,)](out, start, 20_000)
    assert out[1:].eq(1.0).all()


@inside_lane
def test_without_a_guard_memory_outside_is_still_not_written() -> None:
    pool = torch.zeros(1024)
    middle = torch.frombuffer(memoryview(pool.numpy())[512:520], dtype=torch.float32)
    fill_kernel[(1,)](middle, 1.0, 0, BLOCK=64)
    fill_kernel[(1,)](middle, 1.0, -64, BLOCK=64)
    assert pool.sum() == 8


@inside_lane
def test_findings_at_one_place_are_counted_together() -> None:
    x, out = torch.ones(5), torch.zeros(8)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        copy_kernel[(1,)](out, x, 0, BLOCK=8)
        copy_kernel[(3,)](out, x, 1, BLOCK=8)
    (finding,) = log.findings()
    assert (finding.lanes, finding.first_offset) == (3 + 3 * 4, 5)


@pytest.mark.parametrize("policy", POLICIES)
@inside_lane
def test_a_masked_off_lane_without_other_reads_what_the_policy_says(policy: GuardPolicy) -> None:
    x, out = torch.ones(5), torch.zeros(8)
    with interpreter.guarded(policy) as log:
        masked_copy_kernel[(1,)](out, x, 5, BLOCK=8)
    assert log.findings() == ()
    assert out[:5].eq(1).all()
    assert all(math.isnan(v) if policy is GuardPolicy.STRICT else v == 0 for v in out[5:].tolist())


@inside_lane
def test_a_masked_off_lane_reads_other_where_it_is_given() -> None:
    x, out = torch.ones(5), torch.zeros(8)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        padded_copy_kernel[(1,)](out, x, 5, BLOCK=8)
    assert out.tolist() == [1] * 5 + [7] * 3
    assert log.findings() == ()


@inside_lane
def test_other_of_a_scalar_load_is_honoured_when_it_is_zero() -> None:
    x, out = torch.ones(1), torch.ones(1)
    with interpreter.guarded(GuardPolicy.STRICT):
        scalar_kernel[(1,)](out, x, False)
    assert out.item() == 0


@inside_lane
def test_a_poisoned_index_of_a_masked_off_lane_is_no_finding() -> None:
    x, indices, out = torch.randn(20), torch.tensor([3, 19, 0]), torch.zeros(3)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        chase_kernel[(1,)](out, x, indices, 3, BLOCK=4)
    assert out.equal(x[indices])
    assert log.findings() == ()


@inside_lane
def test_gaps_of_a_layout_belong_to_the_buffer() -> None:
    x, out = torch.arange(20.0)[4:12:2], torch.zeros(8)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        copy_kernel[(1,)](out, x, 0, BLOCK=8)
    assert out.tolist() == list(range(4, 12))
    assert log.findings() == ()


@inside_lane
def test_arguments_of_one_storage_share_a_buffer_and_are_named_together() -> None:
    whole = torch.arange(8.0)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        copy_kernel[(1,)](whole, whole[4:], 0, BLOCK=8)
    assert whole[:4].tolist() == [4, 5, 6, 7]
    (finding,) = log.findings()
    assert (finding.argument, finding.lanes, finding.first_offset) == ("out, x", 4, 8)


@inside_lane
def test_an_empty_tensor_has_no_lane_inside() -> None:
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        copy_kernel[(1,)](torch.zeros(8), torch.zeros(0), 0, BLOCK=8)
    (finding,) = log.findings()
    assert (finding.argument, finding.lanes) == ("x", 8)


@inside_lane
def test_an_address_read_from_memory_reaches_the_tensor_it_names() -> None:
    rows = [torch.randn(8), torch.randn(8)]
    table = torch.tensor([row.data_ptr() for row in rows])
    out = torch.zeros(2, 8)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        table_kernel[(2,)](out, table, BLOCK=8)
    assert out.equal(torch.stack(rows))
    assert log.findings() == ()


@inside_lane
def test_an_address_that_names_no_tensor_is_found_and_not_read() -> None:
    out = torch.zeros(1, 8)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        table_kernel[(1,)](out, torch.tensor([16]), BLOCK=8)
    assert out.isnan().all()
    assert log.findings()[0].lanes == 8


@inside_lane
def test_a_pointer_of_another_type_may_be_misaligned() -> None:
    x = torch.arange(64, dtype=torch.uint8)
    out = torch.zeros(4, dtype=torch.int32)
    words_kernel[(1,)](out, x, 3, BLOCK=4)
    assert out.equal(x[3:19].clone().view(torch.int32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int32])
@inside_lane
def test_atomic_adds_to_one_place_add_up_in_lane_order(dtype: torch.dtype) -> None:
    places = torch.tensor([0, 1, 0, 2, 0, 1, 3, 0])
    values = torch.tensor([1, 2, 3, 4, 5, 6, 7, 300]).to(dtype)
    out, seen = torch.zeros(4, dtype=dtype), torch.zeros(8, dtype=dtype)
    add_kernel[(1,)](out, seen, places, values, BLOCK=8)
    right, before = torch.zeros(4, dtype=dtype), []
    for place, value in zip(places.tolist(), values, strict=True):
        before.append(right[place].clone())
        right[place] += value
    assert out.equal(right)
    assert seen.equal(torch.stack(before))


@inside_lane
def test_a_bad_atomic_is_found_and_not_done() -> None:
    places, values = torch.tensor([0, 9, -1, 1]), torch.ones(4)
    out, seen = torch.zeros(4), torch.zeros(4)
    with interpreter.guarded(GuardPolicy.STRICT) as log:
        add_kernel[(1,)](out, seen, places, values, BLOCK=4)
    assert out.tolist() == [1, 1, 0, 0]
    assert log.findings() == (
        Finding(FindingKind.ATOMIC_OUT_OF_BOUNDS, kernel_name("add_kernel"), "out", 2, 9),
    )


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32])
@inside_lane
def test_atomic_extremes_keep_the_extreme(dtype: torch.dtype) -> None:
    places = torch.tensor([0, 0, 1, 1, 1, 0, 1, 0])
    values = torch.tensor([-4, 3, -2, -9, -5, 8, -1, 0]).to(dtype)
    high, low = torch.full((2,), -20).to(dtype), torch.full((2,), 20).to(dtype)
    extreme_kernel[(1,)](high, low, places, values, BLOCK=8)
    assert high.tolist() == [8, -1]
    assert low.tolist() == [-4, -9]


@inside_lane
def test_compare_and_swap_writes_only_where_it_finds_what_it_expects() -> None:
    out, expected = torch.tensor([1, 2, 3, 4]), torch.tensor([1, 0, 3, 0])
    out, expected = out.int(), expected.int()
    seen = torch.zeros(4, dtype=torch.int32)
    swap_kernel[(1,)](out, seen, expected, BLOCK=4)
    assert out.tolist() == [100, 2, 102, 4]
    assert seen.tolist() == [1, 2, 3, 4]


@inside_lane
def test_fresh_memory_is_poisoned_under_the_strict_policy_only_and_only_inside() -> None:
    with interpreter.guarded(GuardPolicy.STRICT):
        assert torch.empty(5).isnan().all()
        assert torch.empty_like(torch.ones(3, dtype=torch.bfloat16)).isnan().all()
        assert torch.ones(2).new_empty(4).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()
    with interpreter.guarded(GuardPolicy.LENIENT):
        assert not torch.are_deterministic_algorithms_enabled()
