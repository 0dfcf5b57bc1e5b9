"""`tl.reduce` and `tl.associative_scan`, for any combine function, a level at a time.

Neighbours are combined pairwise, so a block of n takes log2(n) calls of the combine function,
each rounding in the block's own type as hardware does. Stock Triton calls it once per element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from gatecert.lanes.interpreter.numerics import Array

Blocks = tuple[Any, ...]


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **hints: Any) -> Any:
    """Reduce a block, or a tuple of blocks together, along `axis` (None: all elements)."""
    if not isinstance(input, tuple):
        return reduce((input,), axis, combine_fn, keep_dims)[0]
    axis, keep_dims = _plain(axis), _plain(keep_dims)
    rank = len(input[0].handle.data.shape)
    arrays = [block.handle.data for block in input]
    if axis is None:
        arrays, at = [data.reshape(-1) for data in arrays], 0
    else:
        at = _checked(axis, rank)
    types = [block.dtype for block in input]
    reduced = _fast_reduce(arrays, at, combine_fn)
    if reduced is None:
        reduced = _tree_reduce(arrays, types, at, combine_fn)
    if keep_dims:
        shape = (1,) * rank if axis is None else None
        reduced = [
            data.reshape(shape) if shape is not None else np.expand_dims(data, at)
            for data in reduced
        ]
    return tuple(_block(data, dtype) for data, dtype in zip(reduced, types, strict=True))


def associative_scan(
    input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **hints: Any
) -> Any:
    """Scan a block, or a tuple of blocks together, along `axis`."""
    if not isinstance(input, tuple):
        return associative_scan((input,), axis, combine_fn, reverse)[0]
    at = _checked(_plain(axis), len(input[0].handle.data.shape))
    types = [block.dtype for block in input]
    arrays = [np.moveaxis(block.handle.data, at, 0) for block in input]
    if _plain(reverse):
        arrays = [data[::-1] for data in arrays]
    arrays = _tree_scan(arrays, types, combine_fn)
    if _plain(reverse):
        arrays = [data[::-1] for data in arrays]
    return tuple(
        _block(np.ascontiguousarray(np.moveaxis(data, 0, at)), dtype)
        for data, dtype in zip(arrays, types, strict=True)
    )


def _fast_reduce(arrays: list[Array], at: int, combine_fn: Any) -> list[Array] | None:
    """One numpy call for what Triton's own `sum`, `max` and `min` combine with."""
    if len(arrays) != 1:
        return None
    data = arrays[0]
    if combine_fn is tl.standard._elementwise_max:
        return [np.fmax.reduce(data, axis=at)]
    if combine_fn is tl.standard._elementwise_min:
        return [np.fmin.reduce(data, axis=at)]
    # 16-bit sums round at every level, which numpy would not.
    if combine_fn is tl.standard._sum_combine and data.dtype.kind in "iuf" and data.itemsize >= 4:
        return [np.add.reduce(data, axis=at, dtype=data.dtype)]
    return None


def _tree_reduce(arrays: list[Array], types: list[Any], at: int, combine_fn: Any) -> list[Array]:
    level = [np.moveaxis(data, at, 0) for data in arrays]
    while level[0].shape[0] > 1:
        level = _combine(combine_fn, [d[0::2] for d in level], [d[1::2] for d in level], types)
    return [data[0] for data in level]


def _tree_scan(arrays: list[Array], types: list[Any], combine_fn: Any) -> list[Array]:
    """Each level combines an element with the one `distance` before it."""
    distance, length = 1, arrays[0].shape[0]
    while distance < length:
        # Whole blocks, since only they have a size that is a power of two; the first lanes,
        # which have nothing before them, are put back.
        before = [np.roll(data, distance, axis=0) for data in arrays]
        later = _combine(combine_fn, before, arrays, types)
        arrays = [
            np.concatenate((data[:distance], combined[distance:]))
            for data, combined in zip(arrays, later, strict=True)
        ]
        distance *= 2
    return arrays


def _combine(
    combine_fn: Callable[..., Any], left: list[Array], right: list[Array], types: list[Any]
) -> list[Array]:
    blocks = [_block(*part) for side in (left, right) for part in zip(side, types, strict=True)]
    combined = combine_fn(*blocks)
    results = combined if isinstance(combined, tuple) else (combined,)
    return [
        np.broadcast_to(_data(result), like.shape).astype(like.dtype, copy=False)
        for result, like in zip(results, left, strict=True)
    ]


def _data(value: Any) -> Array:
    return value.handle.data if isinstance(value, tl.tensor) else np.asarray(_plain(value))


def _block(data: Array, dtype: Any) -> Any:
    if data.ndim == 0:
        return tl.tensor(TensorHandle(data.reshape(1), dtype.scalar), dtype.scalar)
    return tl.tensor(
        TensorHandle(data, dtype.scalar), tl.block_type(dtype.scalar, list(data.shape))
    )


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _checked(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} out of bounds for a block of rank {rank}")
    return axis % rank
