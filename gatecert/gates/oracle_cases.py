"""The oracle's cases for a subject: those of a strategy, and those of its log of launches."""

from __future__ import annotations

from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.logged import logged_cases
from gatecert.oracle.operations import Operation
from gatecert.oracle.strategies import LISTED, get_strategy
from gatecert.subjects import Subject


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
