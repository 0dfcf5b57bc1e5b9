"""Recognise how a gate mends an output before it compares it: by an operation that replaces
elements, or leaves them out, for what they are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

Is: TypeAlias = Callable[[Any], bool]


class Mend(NamedTuple):
    """An operation, and how many elements it replaces or leaves out."""

    operation: str
    elements: int


def mend_of(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_made: Is, is_plain: Is
) -> Mend | None:
    """What a function of torch is about to mend, if it is one that does.

    `is_made` says whether a tensor is made of outputs, `is_plain` whether it is a part of one as it
    is. Call it before the function, which may write in place. A mask that is made of no output
    (padding, say) mends none.
    """
    operation = name.strip("_")
    elements = 0
    if operation in _LIMITS:
        elements = _limited(operation, args, kwargs, is_plain)
    elif operation in _MENDS:
        elements = _MENDS[operation](args, is_made)
    return Mend(operation, elements) if elements else None


def _limited(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_plain: Is) -> int:
    """Of a number that is computed from outputs (a denominator, say) limits mend nothing."""
    if not is_plain(args[0]):
        return 0
    return _differing(args[0], getattr(args[0], name)(*args[1:], **kwargs))


def _nan(args: tuple[Any, ...], is_made: Is) -> int:
    return int((~args[0].isfinite()).sum()) if is_made(args[0]) else 0


def _chosen(args: tuple[Any, ...], is_made: Is) -> int:
    """`torch.where(mask, x, y)` or `x.where(mask, y)`: y where the mask is false."""
    if len(args) != 3:
        return 0
    mask, x, y = args if _is_mask(args[0]) else (args[1], args[0], args[2])
    kept = [one for one in (x, y) if is_made(one)] or [one for one in (x, y) if _is_tile(one)]
    if not is_made(mask) or len(kept) != 1:
        return 0
    return int((~mask if kept[0] is x else mask).sum())


def _left_out(args: tuple[Any, ...], is_made: Is) -> int:
    masks = [mask for mask in _masks_in(args[1]) if is_made(mask)] if is_made(args[0]) else []
    return sum(int((~mask).sum()) for mask in masks)


def _filled(args: tuple[Any, ...], is_made: Is) -> int:
    return sum(int(mask.sum()) for mask in _masks_in(args[1]) if is_made(mask))


def _overwritten(args: tuple[Any, ...], is_made: Is) -> int:
    return _differing(*args[:2]) if is_made(args[0]) and not is_made(args[1]) else 0


_LIMITS = frozenset({"clamp", "clip", "clamp_min", "clamp_max"})
_MENDS: Mapping[str, Callable[[tuple[Any, ...], Is], int]] = {
    "nan_to_num": _nan,
    "where": _chosen,
    "getitem": _left_out,
    "masked_select": _left_out,
    "setitem": _filled,
    "masked_fill": _filled,
    "copy": _overwritten,
}


def _masks_in(index: Any) -> Iterator[Any]:
    if isinstance(index, tuple | list):
        for one in index:
            yield from _masks_in(one)
    elif _is_mask(index):
        yield index


def _is_tile(value: Any) -> bool:
    return getattr(value, "ndim", 0) > 0


def _is_mask(value: Any) -> bool:
    return str(getattr(value, "dtype", "")) == "torch.bool"


def _differing(x: Any, y: Any) -> int:
    """How many elements are other numbers; NaN is as good as NaN."""
    return int(((x != y) & ~((x != x) & (y != y))).sum())
