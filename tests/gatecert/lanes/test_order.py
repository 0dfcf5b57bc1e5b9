"""Programs run in any order, and interleaved, so that what only one order hides is seen."""

from __future__ import annotations

import threading

import pytest
import torch
import triton
import triton.language as tl

from gatecert.lanes import interpreter
from gatecert.lanes.interpreter import ProgramOrder
from gatecert.lanes.interpreter.order import INTERLEAVED, Schedule, in_order
from gatecert.lanes.records import GuardPolicy
from tests.gatecert.lanes.inside import inside_lane

_PROGRAMS = 37


@triton.jit
def log_kernel(out, counter):
    place = tl.atomic_add(counter, 1)
    tl.store(out + place, tl.program_id(0))


@triton.jit
def atomic_sum_kernel(out, x, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.atomic_add(out + lanes, tl.load(x + tl.program_id(0) * BLOCK + lanes))


@triton.jit
def plain_sum_kernel(out, x, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    mine = tl.load(x + tl.program_id(0) * BLOCK + lanes)
    tl.store(out + lanes, tl.load(out + lanes) + mine)


@triton.jit
def one_plain_sum_kernel(out, x, PLAIN: tl.constexpr, SLOW: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    if tl.program_id(0) == SLOW:
        for _ in range(3):
            tl.load(x + lanes)
    mine = tl.load(x + tl.program_id(0) * BLOCK + lanes)
    if tl.program_id(0) == PLAIN:
        tl.store(out + lanes, tl.load(out + lanes) + mine)
    else:
        tl.atomic_add(out + lanes, mine)


@triton.jit
def locked_sum_kernel(out, x, lock, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    mine = tl.load(x + tl.program_id(0) * BLOCK + lanes)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + lanes, tl.load(out + lanes) + mine)
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_one_sums_kernel(out, partial, x, counter, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    mine = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)))
    tl.store(partial + tl.program_id(0), mine)
    if tl.atomic_add(counter, 1) == PROGRAMS - 1:
        lanes = tl.arange(0, 64)
        every = tl.load(partial + lanes, mask=lanes < PROGRAMS, other=0.0)
        tl.store(out, tl.sum(every))


@triton.jit
def rows_kernel(x, BLOCK: tl.constexpr):
    places = x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(places, 2 * tl.load(places))


@triton.jit
def failing_kernel(out, x):
    if tl.program_id(0) == 5:
        tl.store(out, tl.load(x).no_such_method())
    tl.store(out, tl.load(x))


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(8), torch.arange(_PROGRAMS * 8, dtype=torch.float32).view(_PROGRAMS, 8)


@pytest.mark.parametrize("order", ProgramOrder)
@inside_lane
def test_every_program_runs_once(order: ProgramOrder) -> None:
    out, counter = torch.full((24,), -1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with interpreter.scheduled(order, seed=1):
        log_kernel[(24,)](out, counter)
    started = out.tolist()
    assert sorted(started) == list(range(24))
    assert (started == list(range(24))) == (
        order in (ProgramOrder.FORWARD, ProgramOrder.INTERLEAVED)
    )
    assert (started == list(range(23, -1, -1))) == (
        order in (ProgramOrder.REVERSED, ProgramOrder.INTERLEAVED_LATE)
    )


@inside_lane
def test_a_shuffle_is_its_seed_s() -> None:
    def shuffled(seed: int) -> list[tuple[int, int, int]]:
        return list(in_order(Schedule(ProgramOrder.SHUFFLED, seed), (3, 4, 5)))

    assert shuffled(1) == shuffled(1) != shuffled(2)
    assert sorted(shuffled(1)) == list(in_order(Schedule(), (3, 4, 5)))


@pytest.mark.parametrize("order", ProgramOrder)
@inside_lane
def test_atomics_lose_nothing_in_any_order(order: ProgramOrder) -> None:
    out, x = _inputs()
    with interpreter.scheduled(order):
        atomic_sum_kernel[(_PROGRAMS,)](out, x, BLOCK=8)
    assert out.equal(x.sum(0))


@pytest.mark.parametrize("order", ProgramOrder)
@inside_lane
def test_a_plain_update_is_lost_when_programs_interleave_only(order: ProgramOrder) -> None:
    out, x = _inputs()
    with interpreter.scheduled(order):
        plain_sum_kernel[(_PROGRAMS,)](out, x, BLOCK=8)
    assert out.equal(x.sum(0)) == (order not in INTERLEAVED)


@pytest.mark.parametrize("plain", [0, _PROGRAMS - 1])
@pytest.mark.parametrize("slow", [0, _PROGRAMS - 1])
@inside_lane
def test_an_update_that_one_program_alone_makes_plainly_is_lost_where_writes_are_late(
    plain: int, slow: int
) -> None:
    lost = []
    for order in ProgramOrder:
        out, x = _inputs()
        with interpreter.scheduled(order):
            one_plain_sum_kernel[(_PROGRAMS,)](out, x, PLAIN=plain, SLOW=slow, BLOCK=8)
        if not out.equal(x.sum(0)):
            lost.append(order)
    assert ProgramOrder.INTERLEAVED_LATE in lost
    assert set(lost) <= set(INTERLEAVED)


@pytest.mark.parametrize("order", INTERLEAVED)
@inside_lane
def test_what_locks_and_counters_order_stays_right_when_interleaved(order: ProgramOrder) -> None:
    out, x = _inputs()
    with interpreter.scheduled(order):
        locked_sum_kernel[(_PROGRAMS,)](out, x, torch.zeros(1, dtype=torch.int32), BLOCK=8)
        total, counter = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
        partial = torch.full((_PROGRAMS,), float("nan"))
        last_one_sums_kernel[(_PROGRAMS,)](total, partial, x, counter, PROGRAMS=_PROGRAMS, BLOCK=8)
    assert out.equal(x.sum(0))
    assert total.item() == x.sum().item()


@inside_lane
def test_an_error_in_one_program_ends_all_and_is_the_launch_s() -> None:
    before = threading.active_count()
    with interpreter.scheduled(ProgramOrder.INTERLEAVED), pytest.raises(Exception) as caught:
        failing_kernel[(16,)](torch.zeros(1), torch.zeros(1))
    assert "no_such_method" in str(caught.value)
    assert threading.active_count() == before


@inside_lane
def test_a_log_says_whether_programs_met_in_memory() -> None:
    out, x = _inputs()

    def shared(kernel: object, programs: int, *args: torch.Tensor) -> bool:
        with interpreter.guarded(GuardPolicy.STRICT) as log:
            kernel[(programs,)](*args, BLOCK=8)  # type: ignore[index]
        return log.shares_memory

    assert shared(atomic_sum_kernel, 2, out, x)
    assert shared(plain_sum_kernel, 2, out, x)
    assert shared(rows_kernel, 2, x)
    assert not shared(plain_sum_kernel, 1, out, x)


@inside_lane
def test_guards_hold_while_programs_interleave() -> None:
    out, x = _inputs()
    with (
        interpreter.scheduled(ProgramOrder.INTERLEAVED),
        interpreter.guarded(GuardPolicy.STRICT) as log,
    ):
        atomic_sum_kernel[(_PROGRAMS + 1,)](out, x, BLOCK=8)
    (finding,) = log.findings()
    assert (finding.lanes, finding.argument) == (8, "x")
