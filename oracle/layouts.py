"""Layouts: how a tensor lies in memory, with poison wherever no element lives."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gatecert.oracle.sparse import SPARSE_FROM, sparse_memory

# An index read from a gap is far outside every buffer; odd, so no product hides it.
_INTEGER_POISON = {
    torch.int64: 2**40 + 12345,
    torch.int32: 2**30 + 12345,
    torch.int16: 2**14 + 12345,
    torch.int8: 85,
    torch.uint8: 85,
    torch.bool: True,
}

_STEP = 2203
_FAR_PITCH = 2**30 + _STEP
_ROW_PITCH = 33013


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a tensor lies: `span` elements of storage, strides and offset into it."""

    strides: tuple[int, ...]
    offset: int
    span: int


def _contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _contiguous(shape: tuple[int, ...]) -> Placement:
    return _tight(shape, _contiguous_strides(shape))


def _tight(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Placement:
    """A placement whose storage ends with its last element."""
    if 0 in shape:
        return Placement(strides, 0, 0)
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return Placement(strides, offset, offset + reach + 1)


def _transposed(shape: tuple[int, ...]) -> Placement:
    if len(shape) < 2:
        return _contiguous(shape)
    # Matrices lie column by column; from three dims on heads and sequence change places, as
    # `x.view(B, S, H, D).transpose(1, 2)` leaves them.
    first, second = (0, 1) if len(shape) == 2 else (-3, -2)
    order = list(range(len(shape)))
    order[first], order[second] = order[second], order[first]
    strides = _contiguous_strides(tuple(shape[axis] for axis in order))
    return _tight(shape, tuple(strides[order.index(axis)] for axis in range(len(shape))))


def _inner_transposed(shape: tuple[int, ...]) -> Placement:
    # The last two axes change places: no stride that a kernel may take for 1 is 1.
    if len(shape) < 2:
        return _contiguous(shape)
    *outer, columns, rows = _contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return _tight(shape, (*outer, rows, columns))


def _row_padded(shape: tuple[int, ...]) -> Placement:
    if len(shape) < 2:
        return _contiguous(shape)
    return _tight(shape, _contiguous_strides((*shape[:-1], shape[-1] + 7)))


def _sliced(shape: tuple[int, ...]) -> Placement:
    if len(shape) < 2:
        return _contiguous(shape)
    # A window of a larger tensor: `big[1:-1, 3:-2]`.
    strides = _contiguous_strides((*shape[:-2], shape[-2] + 2, shape[-1] + 5))
    return _tight(shape, strides, offset=strides[-2] + 3)


def _offset_base(shape: tuple[int, ...]) -> Placement:
    return _tight(shape, _contiguous_strides(shape), offset=3)


def _expanded(shape: tuple[int, ...]) -> Placement:
    if len(shape) < 2:
        return _contiguous(shape)
    return _tight(shape, (0, *_contiguous_strides(shape)[1:]))


def _spread(shape: tuple[int, ...]) -> Placement:
    # Small indices times these strides leave 16 bits, as far ones times 1 leave 32.
    if len(shape) < 2:
        return _contiguous(shape)
    return _tight(shape, tuple(_STEP * stride for stride in _contiguous_strides(shape)))


def _far_rows(shape: tuple[int, ...]) -> Placement:
    # Rows 2^15 elements apart, for launchers that copy what has no innermost stride of 1.
    if len(shape) < 2:
        return _contiguous(shape)
    return _tight(shape, _contiguous_strides((*shape[:-1], _ROW_PITCH)))


def _far_span(shape: tuple[int, ...]) -> Placement:
    # Strides that fit 32 bits, but the third index times them does not. In sparse memory.
    if len(shape) < 2:
        return _contiguous(shape)
    return _tight(shape, (_FAR_PITCH, *_contiguous_strides(shape)[1:]))


def _strided_vectors(shape: tuple[int, ...]) -> Placement:
    return _tight(shape, (3,)) if len(shape) == 1 else _contiguous(shape)


FAR_SPAN = "far_span"
LAYOUTS = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "inner_transposed": _inner_transposed,
    "sliced": _sliced,
    "row_padded": _row_padded,
    "offset_base": _offset_base,
    "expanded": _expanded,
    "spread": _spread,
    "far_rows": _far_rows,
    FAR_SPAN: _far_span,
    "strided_vectors": _strided_vectors,
}
"""Layout name -> placement of a shape. Tensors of one dim stay contiguous except in
`offset_base`. `expanded` shares one row of memory along the first dim (stride 0). `spread` puts
each element 2,203 places after the one before, `far_rows` each row 33,013 places; their cases
are small. In `far_span` an index of the first dim is 2^30 + 2203 places after the one before, so
that the third lies past 2^31. In `strided_vectors` the
tensors of one dim, and they alone, are every third element of longer ones."""


def split_layout(text: str) -> tuple[str, tuple[str, ...]]:
    """A case's layout and the arguments that alone take it: `row_padded:q+v`; none: all do."""
    name, _, takers = text.partition(":")
    return name, tuple(takers.split("+")) if takers else ()


def layout_of(text: str, argument: str) -> str:
    """The layout of one argument; those that do not take the case's are contiguous."""
    name, takers = split_layout(text)
    return name if not takers or argument in takers else "contiguous"


def moves(layout: str, shape: tuple[int, ...]) -> bool:
    """Whether its strides lead elsewhere than contiguous ones; those of a single index do not."""
    pairs = zip(shape, LAYOUTS[layout](shape).strides, _contiguous_strides(shape), strict=True)
    return any(size > 1 and stride != plain for size, stride, plain in pairs)


def poison_of(dtype: torch.dtype) -> float:
    """What memory holds that no element lives in: NaN, or an integer far outside."""
    return _INTEGER_POISON[dtype] if dtype in _INTEGER_POISON else float("nan")


def place(values: torch.Tensor, placement: Placement) -> torch.Tensor:
    """A new tensor with these values and strides; gaps hold NaN, or a far integer, or where they
    are gigabytes 0.

    The storage ends with the last element, so an access past it leaves the buffer. Along a
    stride of 0 the last row wins: give equal ones.
    """
    poison = poison_of(values.dtype)
    if placement.span * values.element_size() >= SPARSE_FROM:
        memory = sparse_memory(placement.span, values.dtype)
    else:
        memory = torch.full((placement.span,), poison, dtype=values.dtype)
    view = memory.as_strided(tuple(values.shape), placement.strides, placement.offset)
    if 0 in placement.strides and values.numel():
        index = tuple(slice(0, 1) if step == 0 else slice(None) for step in placement.strides)
        view[index] = values[index]
    else:
        view.copy_(values)
    return view


def placement_of(tensor: torch.Tensor) -> Placement:
    """How an existing tensor lies in its storage."""
    span = tensor.untyped_storage().nbytes() // tensor.element_size()
    return Placement(tuple(tensor.stride()), int(tensor.storage_offset()), span)
