"""The catalogue of mutation operators: an explicit list, in the order of reports."""

from __future__ import annotations

import difflib
import hashlib

from gatecert.errors import UsageError
from gatecert.operators import (
    accumulator_overwrite,
    drop_load_mask,
    drop_store_mask,
    dropped_factor,
    mask_bound_off_by_one,
    missing_max_subtraction,
    missing_rescale,
    wrong_constant,
    wrong_pad_value,
    wrong_reduction_axis,
)
from gatecert.operators.records import Operator

_OPERATORS = (
    drop_load_mask.OPERATOR,
    drop_store_mask.OPERATOR,
    wrong_pad_value.OPERATOR,
    mask_bound_off_by_one.OPERATOR,
    accumulator_overwrite.OPERATOR,
    dropped_factor.OPERATOR,
    missing_rescale.OPERATOR,
    missing_max_subtraction.OPERATOR,
    wrong_constant.OPERATOR,
    wrong_reduction_axis.OPERATOR,
)


def all_operators() -> tuple[Operator, ...]:
    """Every operator, always in the same order."""
    return _OPERATORS


def get_operator(name: str) -> Operator:
    """The operator of that name; raises `UsageError` that names the nearest one."""
    by_name = {operator.name: operator for operator in _OPERATORS}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, by_name, n=1, cutoff=0.0)[0]
    raise UsageError(
        f"unknown operator {name!r}: did you mean {near!r}? `gatecert operators` lists them all"
    )


def catalogue_version() -> str:
    """Twelve hex digits that change whenever any operator plants something else."""
    entries = "\n".join(f"{operator.name} {operator.version}" for operator in _OPERATORS)
    return hashlib.sha256(entries.encode()).hexdigest()[:12]


def bug_classes() -> tuple[str, ...]:
    """Bug classes that the catalogue covers, in its order, each once."""
    return tuple(dict.fromkeys(operator.bug_class for operator in _OPERATORS))
