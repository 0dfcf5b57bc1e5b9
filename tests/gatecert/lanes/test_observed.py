"""An observer sees what launches read, write, mask and repeat, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from gatecert.lanes import interpreter
from gatecert.lanes.interpreter.accesses import masks_shown
from gatecert.lanes.records import Launch, LaunchTrace
from tests.gatecert.lanes.inside import inside_lane


@triton.jit
def double_rows(x, y, unused, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * cols + lanes, mask=lanes < cols)
        tl.store(y + row * cols + lanes, 2 * values, mask=lanes < cols)


@triton.jit
def add_up(x, total, BLOCK: tl.constexpr):
    tl.atomic_add(total, tl.sum(tl.load(x + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def add_often(x, total, TURNS: tl.constexpr, BLOCK: tl.constexpr):
    for _ in range(TURNS):
        for _ in tl.static_range(0, 1):
            tl.atomic_add(total, tl.sum(tl.load(x + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def fails(x, BLOCK: tl.constexpr):
    tl.no_such_function(x)


class Observer:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.before_sums: list[float] = []
        self.traces: list[LaunchTrace] = []

    def before(self, launch: Launch, tensors: Mapping[str, torch.Tensor]) -> None:
        self.before_sums.append(float(sum(tensor.sum() for tensor in tensors.values())))

    def after(
        self, launch: Launch, tensors: Mapping[str, torch.Tensor], trace: LaunchTrace
    ) -> None:
        self.traces.append(trace)


class Arguments:
    """Keeps the arguments of launches that it is shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, dict[str, Any], tuple[int, ...]]] = []

    def launched(
        self, kernel: str, args: tuple[Any, ...], options: Mapping[str, Any], grid: tuple[int, ...]
    ) -> None:
        self.seen.append((kernel, len(args), dict(options), grid))


@inside_lane
def test_arguments_are_shown_before_the_launch_and_only_inside() -> None:
    x, total, shown = torch.ones(8), torch.zeros(1), Arguments()
    with interpreter.arguments_shown(shown):
        add_up[(1,)](x, total, BLOCK=8)
        with interpreter.dry_run():
            add_up[(1,)](x, total, BLOCK=8)
    add_up[(1,)](x, total, BLOCK=8)
    ((kernel, given, options, grid),) = shown.seen
    assert kernel.endswith(":add_up")
    assert (given, options, grid) == (2, {"BLOCK": 8}, (1, 1, 1))


@pytest.mark.parametrize(("cols", "said"), [(8, {True}), (20, {True, False})])
@inside_lane
def test_every_mask_is_told_as_its_access_is_made(cols: int, said: set[bool]) -> None:
    told: list[bool] = []
    x, y, unused = torch.ones(2, cols), torch.zeros(2, cols), torch.zeros(1)
    with masks_shown(told.append):
        double_rows[(2,)](x, y, unused, cols, BLOCK=8)
    double_rows[(2,)](x, y, unused, cols, BLOCK=8)
    assert set(told) == said
    assert len(told) == 2 * 2 * -(-cols // 8)  # a load and a store for each block of two rows


@pytest.mark.parametrize(
    ("cols", "masked", "turns"), [(8, False, 1), (20, True, 3), (16, False, 2)]
)
@inside_lane
def test_masks_loops_and_accesses_are_seen(cols: int, masked: bool, turns: int) -> None:
    x, y, unused = torch.ones(2, cols), torch.zeros(2, cols), torch.zeros(1)
    observer = Observer()
    with interpreter.observed(observer):
        double_rows[(2,)](x, y, unused, cols, BLOCK=8)
    double_rows[(2,)](x, y, unused, cols, BLOCK=8)
    (trace,) = observer.traces
    assert trace == LaunchTrace(
        read=frozenset({"x"}),
        wrote=frozenset({"y"}),
        masked=masked,
        longest_loop=turns,
        asks_which_program=True,
    )
    # Values are those of the time before.
    assert observer.before_sums == [2.0 * cols]
    assert bool((y == 2).all())


@inside_lane
def test_a_kernel_without_masks_and_loops_has_none() -> None:
    observer = Observer()
    with interpreter.observed(observer):
        add_up[(1,)](torch.ones(8), torch.zeros(1), BLOCK=8)
    (trace,) = observer.traces
    assert (trace.masked, trace.longest_loop, trace.asks_which_program) == (None, None, False)
    assert (trace.read, trace.wrote) == ({"x"}, {"total"})


@pytest.mark.parametrize(("turns", "seen"), [(1, None), (3, 3)])
@inside_lane
def test_a_loop_that_constants_hold_to_one_turn_is_none(turns: int, seen: int | None) -> None:
    observer = Observer()
    with interpreter.observed(observer):
        add_often[(1,)](torch.ones(8), torch.zeros(1), TURNS=turns, BLOCK=8)
    assert [trace.longest_loop for trace in observer.traces] == [seen]


@inside_lane
def test_a_launch_that_fails_or_is_dry_is_not_shown_as_done() -> None:
    observer = Observer()
    with interpreter.observed(observer):
        with pytest.raises(Exception, match="no_such_function"):
            fails[(1,)](torch.ones(8), BLOCK=8)
        with interpreter.dry_run():
            add_up[(1,)](torch.ones(8), torch.zeros(1), BLOCK=8)
    assert observer.traces == []
