"""The catalogue of mutation operators: an explicit list, in the order of reports."""

from __future__ import annotations

import difflib
import hashlib

from gatecert.errors import UsageError
from gatecert.operators import (
    accumulator_overwrite,
    argument_not_forwarded,
    atomic_to_plain,
    causal_off_by_one,
    cdiv_to_floor,
    drop_load_mask,
    drop_store_mask,
    dropped_factor,
    dropped_guard,
    dropped_int64,
    dropped_mask_term,
    dropped_offset,
    dropped_upcast,
    dropped_where,
    grid_rounded_down,
    index_off_by_one,
    mask_bound_off_by_one,
    misplaced_epsilon,
    missing_max_subtraction,
    missing_rescale,
    swapped_div_mod,
    swapped_mask_bound,
    uninitialised_buffer,
    wrong_constant,
    wrong_loop_range,
    wrong_pad_value,
    wrong_reduction_axis,
    wrong_stride,
)
from gatecert.operators.records import Operator

_OPERATORS = (
    drop_load_mask.OPERATOR,
    drop_store_mask.OPERATOR,
    wrong_pad_value.OPERATOR,
    mask_bound_off_by_one.OPERATOR,
    swapped_mask_bound.OPERATOR,
    dropped_mask_term.OPERATOR,
    dropped_where.OPERATOR,
    causal_off_by_one.OPERATOR,
    accumulator_overwrite.OPERATOR,
    dropped_factor.OPERATOR,
    missing_rescale.OPERATOR,
    missing_max_subtraction.OPERATOR,
    wrong_constant.OPERATOR,
    wrong_reduction_axis.OPERATOR,
    wrong_loop_range.OPERATOR,
    dropped_guard.OPERATOR,
    wrong_stride.OPERATOR,
    dropped_offset.OPERATOR,
    index_off_by_one.OPERATOR,
    cdiv_to_floor.OPERATOR,
    swapped_div_mod.OPERATOR,
    dropped_int64.OPERATOR,
    dropped_upcast.OPERATOR,
    atomic_to_plain.OPERATOR,
    misplaced_epsilon.OPERATOR,
    uninitialised_buffer.OPERATOR,
    grid_rounded_down.OPERATOR,
    argument_not_forwarded.OPERATOR,
)


def all_operators() -> tuple[Operator, ...]:
    """Every operator, always in the same order."""
    return _OPERATORS


def get_operator(name: str) -> Operator:
    """The operator of that name; raises `UsageError` that names the nearest one."""
    by_name = {operator.name: operator for operator in _OPERATORS}
    if name in by_name:
        return by_name[name]
    of_class = [operator.name for operator in _OPERATORS if operator.bug_class == name]
    if of_class:
        raise UsageError(f"{name!r} is a bug class; its operators are {', '.join(of_class)}")
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
