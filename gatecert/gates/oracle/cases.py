"""The oracle's cases for a subject, with inputs and references, and who runs in which order."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from gatecert.operators.records import Reveal
from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.expectation import Expected, expect
from gatecert.oracle.inputs import Inputs, make_inputs
from gatecert.oracle.logged import logged_cases
from gatecert.oracle.operations import Operation
from gatecert.oracle.strategies import LISTED, OF_THEIR_OWN, get_strategy
from gatecert.subjects import Subject


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case with its inputs and its fp64 expectation.

    `config` is the autotune configuration that it runs under where every case runs under each;
    else `turn` says whose turn it is.
    """

    case: Case
    inputs: Inputs
    expected: Expected
    config: int | None = None
    turn: int = 0

    @property
    def name(self) -> str:
        """The case's id, and its configuration where that is fixed."""
        return self.case.id if self.config is None else f"{self.case.id} config={self.config}"

    @property
    def tuning(self) -> int:
        """The position of the configuration, to be counted round and round."""
        return self.turn if self.config is None else self.config


def subject_cases(
    operation: Operation, subject: Subject, *, strategy: str, seed: int
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases, likely killers first, and notes on logged shapes that are scaled or skipped."""
    cases = cases_for(
        operation,
        dtypes=subject.dtypes,
        layouts=subject.layouts,
        blocks=subject.blocks,
        extra_dims=subject.dims,
        strategy=strategy,
        seed=seed,
    )
    if not subject.logged or not (strategy == LISTED or get_strategy(strategy).extra_dims):
        return cases, ()
    logged, notes = logged_cases(operation, subject.logged, blocks=subject.blocks, seed=seed)
    if strategy == LISTED and not subject.dims:
        cases = ()
    return tuple(dict.fromkeys((*cases, *logged))), notes


def prepare_case(
    operation: Operation,
    case: Case,
    subject: Subject,
    held: Mapping[str, torch.Tensor] | None = None,
    *,
    baseline: bool = False,
) -> PreparedCase:
    """Inputs and expectation of one case; `held` tensors take the place of the case's own, and
    `baseline` asks for torch's own result."""
    inputs = make_inputs(operation, case, held)
    expected = expect(operation, case, inputs, intermediate=subject.intermediate, baseline=baseline)
    return PreparedCase(case, inputs, expected)


def under_every_config(cases: Sequence[PreparedCase], configs: int) -> Iterator[PreparedCase]:
    """The cases under each of several autotune configurations; inputs are shared."""
    if configs < 2:
        yield from cases
    else:
        for config in range(configs):
            yield from (replace(case, config=config) for case in cases)


def in_turns(cases: Sequence[PreparedCase], configs: int) -> Iterator[PreparedCase]:
    """The cases, each under one of the autotune configurations, such that each has its turn.

    Who takes which follows from the cases' ids: their order goes with dtypes and layouts. Where
    there are fewer cases than configurations, the first ones run again. Where their number is not
    known, each case's id alone says.
    """
    ranked = sorted(range(len(cases)), key=lambda i: zlib.crc32(cases[i].case.id.encode()))
    if configs < 1:
        yield from (replace(case, turn=zlib.crc32(case.case.id.encode())) for case in cases)
        return
    turns = {place: rank % configs for rank, place in enumerate(ranked)}
    yield from (replace(case, turn=turns[place]) for place, case in enumerate(cases))
    for config in range(len(cases), configs if cases else 0):
        yield replace(cases[config % len(cases)], turn=config)


def likely_first(
    cases: Sequence[PreparedCase], reveal: Collection[Reveal]
) -> Iterator[tuple[int, PreparedCase]]:
    """The cases with their places: first those of the layouts that show a bug with these labels.

    The labels decide nothing else: whoever is rejected would be in any order.
    """

    def is_late(entry: tuple[int, PreparedCase]) -> bool:
        layout = entry[1].case.layout.partition(":")[0]
        far = Reveal.LARGE_SPAN in reveal and layout in OF_THEIR_OWN
        return not (far or (Reveal.STRIDED in reveal and layout != "contiguous"))

    return iter(sorted(enumerate(cases), key=is_late))
