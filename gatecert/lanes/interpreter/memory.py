"""Memory as a launch sees it: every pointer knows the buffer it came from.

A tensor argument gets a virtual address: the number of its buffer above bit 48, and an offset
around the middle of the low 48 bits, so that both directions out of bounds stay recognisable.
Buffers are whole storages; arguments that share a storage share a buffer. Real addresses have
nothing above bit 48: such a pointer came out of memory or of an integer, and is looked up among
the tensors that are alive. Nothing outside a buffer is ever read or written.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from gatecert.lanes.interpreter.accesses import Accesses
from gatecert.lanes.interpreter.failures import LaneRefusal, StoppedLaunch
from gatecert.lanes.interpreter.guards import Guard
from gatecert.lanes.interpreter.numerics import Array
from gatecert.lanes.interpreter.order import Access
from gatecert.lanes.records import Finding, FindingKind, GuardPolicy

_OFFSET_BITS = 48
_MIDDLE = 1 << (_OFFSET_BITS - 1)
_NO_BUFFER = "(no buffer)"
_ACCESSES_AFTER_A_BAD_ONE = 10_000
"""A launch of the corpus makes some hundreds; one whose loop ends at poison makes 10^9."""


class Buffer:
    """One storage: its bytes, where it is, and the arguments that point into it."""

    __slots__ = ("_views", "address", "base", "bytes", "names", "size")

    def __init__(self, storage: torch.UntypedStorage, base: int) -> None:
        self.address = storage.data_ptr()
        self.size = storage.nbytes()
        self.base = base
        self.names: list[str] = []
        self.bytes: Array = np.empty(0, np.uint8)
        if self.size:
            raw = (ctypes.c_uint8 * self.size).from_address(self.address)
            self.bytes = np.frombuffer(memoryview(raw), np.uint8)
        self._views: dict[np.dtype[Any], Array] = {}

    def view(self, dtype: np.dtype[Any]) -> Array:
        """The whole elements of the buffer."""
        found = self._views.get(dtype)
        if found is None:
            whole = self.size - self.size % dtype.itemsize
            found = self._views[dtype] = self.bytes[:whole].view(dtype)
        return found


class Memory:
    """The buffers of one launch, guarded."""

    def __init__(self, kernel: str, guard: Guard) -> None:
        self._kernel = kernel
        self._guard = guard
        self._buffers: dict[int, Buffer] = {}
        self._by_address: dict[int, Buffer] = {}
        self._live: dict[int, Buffer] | None = None
        self._next_turn: Callable[[Access], None] = _go_on
        self.accesses = Accesses()
        self._is_counting_down = False
        self.may_misalign = False
        """A pointer changed its element type, or came from an integer."""

    def pointer(self, name: str, tensor: Any) -> int:
        """The virtual address of a tensor argument's first element.

        Raises:
            LaneRefusal: the tensor is not in CPU memory.
        """
        if tensor.device.type != "cpu":
            raise LaneRefusal(
                f"argument {name!r} of {self._kernel} is on {tensor.device}; the interpreter "
                "lane takes CPU tensors"
            )
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        buffer = self._by_address.get(address) if address else None
        if buffer is None:
            number = len(self._buffers) + 1
            # Low bits are kept, for kernels that look at the alignment of a pointer.
            base = (number << _OFFSET_BITS) + _MIDDLE + address % 16
            buffer = self._buffers[number] = self._by_address[address] = Buffer(storage, base)
        if name not in buffer.names:
            buffer.names.append(name)
        offset = int(tensor.data_ptr()) - address if address else 0
        self.may_misalign |= offset % max(1, tensor.element_size()) != 0
        return buffer.base + offset

    def set_turns(self, next_turn: Callable[[Access], None]) -> None:
        """Call `next_turn` before every access from now on: it lets another program run."""
        self._next_turn = next_turn

    def names_of(self, numbers: Iterable[int]) -> frozenset[str]:
        """The arguments that point into buffers of these numbers."""
        found = (self._buffers[number] for number in numbers if number in self._buffers)
        return frozenset(name for buffer in found for name in buffer.names)

    def load(
        self, addresses: Array, mask: Array | None, other: Array | None, dtype: np.dtype[Any]
    ) -> Array:
        """Read lanes; what bad and masked-off lanes read is the guard's to say."""
        self._next_turn(Access.LOAD)
        self.accesses.read.add(_number(addresses))
        whole = self.accesses.is_whole(mask)
        found = self._find(addresses, mask, dtype)
        if found is None:
            return self._load_by_lane(addresses, mask, other, dtype)
        contents, index = found
        data = contents.take(index, mode="clip")  # masked-off lanes may be anywhere
        if whole or mask is None:
            return data
        return np.where(mask, data, self._guard.masked_off(dtype) if other is None else other)

    def store(self, addresses: Array, mask: Array | None, values: Array) -> None:
        """Write lanes; bad ones are recorded and not done. Of equal addresses the last wins."""
        self._next_turn(Access.STORE)
        self.accesses.written.add(_number(addresses))
        whole = self.accesses.is_whole(mask)
        found = self._find(addresses, mask, values.dtype)
        if found is None:
            self._store_by_lane(addresses, mask, values)
            return
        contents, index = found
        if whole or mask is None:
            contents[index] = values
        else:
            contents[index[mask]] = values[mask]

    def update(
        self,
        addresses: Array,
        mask: Array,
        values: Array,
        combine: Callable[[Array, Array, Array], Array],
    ) -> Array:
        """Read, combine and write lanes one after the other; returns what each lane read.

        `combine(old, value, lanes)` gives the new contents; `lanes` are flat lane numbers.
        """
        self._next_turn(Access.ATOMIC)
        self.accesses.note_atomic(_number(addresses), mask)
        dtype = values.dtype
        flat = values.reshape(-1)
        seen = np.full(values.size, self._guard.masked_off(dtype), dtype)
        for buffer, lanes, offsets in self._split(
            addresses, mask, dtype, FindingKind.ATOMIC_OUT_OF_BOUNDS
        ):
            for turn in _turns(offsets):
                old = _gather(buffer, offsets[turn], dtype)
                seen[lanes[turn]] = old
                new = combine(old, flat[lanes[turn]], lanes[turn])
                _scatter(buffer, offsets[turn], new.astype(dtype, copy=False))
        return seen.reshape(values.shape)

    def _find(
        self, addresses: Array, mask: Array | None, dtype: np.dtype[Any]
    ) -> tuple[Array, Array] | None:
        """The contents of a buffer and the place of each lane in it.

        None unless every active lane is inside the one buffer that the first lane points to,
        which is how nearly every access is.
        """
        if not addresses.size or self.may_misalign:
            return None
        buffer = self._buffers.get(int(addresses.item(0)) >> _OFFSET_BITS)
        if buffer is None or buffer.size < dtype.itemsize:
            return None
        offsets = addresses - np.uint64(buffer.base)  # below the base it wraps, and is too large
        inside = offsets <= np.uint64(buffer.size - dtype.itemsize)
        missing = ~inside if mask is None else mask > inside
        if missing.any():
            return None
        index = (offsets >> np.uint64(dtype.itemsize.bit_length() - 1)).view(np.int64)
        return buffer.view(dtype), index

    def _load_by_lane(
        self, addresses: Array, mask: Array | None, other: Array | None, dtype: np.dtype[Any]
    ) -> Array:
        if mask is None:
            mask = np.ones(addresses.shape, np.bool_)
        rest = self._guard.masked_off(dtype) if other is None else other
        bad = np.full(addresses.shape, self._guard.bad_load(dtype), dtype)
        data = np.where(mask, bad, rest).reshape(-1)
        for buffer, lanes, offsets in self._split(
            addresses, mask, dtype, FindingKind.LOAD_OUT_OF_BOUNDS
        ):
            data[lanes] = _gather(buffer, offsets, dtype)
        return data.reshape(addresses.shape)

    def _store_by_lane(self, addresses: Array, mask: Array | None, values: Array) -> None:
        if mask is None:
            mask = np.ones(addresses.shape, np.bool_)
        flat = values.reshape(-1)
        for buffer, lanes, offsets in self._split(
            addresses, mask, values.dtype, FindingKind.STORE_OUT_OF_BOUNDS
        ):
            _scatter(buffer, offsets, flat[lanes])

    def _split(
        self, addresses: Array, mask: Array, dtype: np.dtype[Any], kind: FindingKind
    ) -> Iterator[tuple[Buffer, Array, Array]]:
        """Active lanes inside a buffer: (buffer, lane numbers, byte offsets); logs the rest."""
        lanes = np.flatnonzero(np.broadcast_to(mask, addresses.shape))
        active = np.ascontiguousarray(addresses).reshape(-1)[lanes]
        numbers = active >> np.uint64(_OFFSET_BITS)
        for number in np.unique(numbers):
            here = numbers == number
            if number == 0:
                yield from self._split_real(lanes[here], active[here], dtype, kind)
            elif (buffer := self._buffers.get(int(number))) is None:
                self._log(kind, _NO_BUFFER, int(here.sum()), 0)
            else:
                offsets = (active[here] - np.uint64(buffer.base)).view(np.int64)
                yield from self._inside(buffer, lanes[here], offsets, dtype, kind)

    def _split_real(
        self, lanes: Array, addresses: Array, dtype: np.dtype[Any], kind: FindingKind
    ) -> Iterator[tuple[Buffer, Array, Array]]:
        left = np.ones(lanes.size, np.bool_)
        for buffer in self._live_buffers().values():
            offsets = (addresses - np.uint64(buffer.address)).view(np.int64)
            here = left & (offsets >= 0) & (offsets < buffer.size)
            if here.any():
                left &= ~here
                yield from self._inside(buffer, lanes[here], offsets[here], dtype, kind)
        if left.any():
            self._log(kind, _NO_BUFFER, int(left.sum()), 0)

    def _inside(
        self, buffer: Buffer, lanes: Array, offsets: Array, dtype: np.dtype[Any], kind: FindingKind
    ) -> Iterator[tuple[Buffer, Array, Array]]:
        good = (offsets >= 0) & (offsets <= buffer.size - dtype.itemsize)
        if not good.all():
            bad = offsets[~good]
            name = ", ".join(buffer.names) or _NO_BUFFER
            self._log(kind, name, bad.size, int(bad[0]) // dtype.itemsize)
        if good.any():
            yield buffer, lanes[good], offsets[good]

    def _live_buffers(self) -> dict[int, Buffer]:
        """Storages of this launch and of every tensor alive, by address."""
        if self._live is None:
            self._live = {address: b for address, b in self._by_address.items() if b.size}
            for thing in gc.get_objects():
                if issubclass(type(thing), torch.Tensor) and _is_plain(thing):
                    storage = thing.untyped_storage()
                    if storage.nbytes() and storage.data_ptr() not in self._live:
                        self._live[storage.data_ptr()] = Buffer(storage, 0)
        return self._live

    def _log(self, kind: FindingKind, argument: str, lanes: int, first_offset: int) -> None:
        self._guard.log.add(Finding(kind, self._kernel, argument, lanes, first_offset))
        if self._guard.policy is GuardPolicy.STRICT and not self._is_counting_down:
            self._is_counting_down = True
            self._next_turn = _counting_down(self._next_turn, self._kernel)


def _go_on(access: Access) -> None:
    pass


def _counting_down(next_turn: Callable[[Access], None], kernel: str) -> Callable[[Access], None]:
    """Let so many further accesses pass, and stop the launch at the next."""
    accesses = itertools.count()

    def count(access: Access) -> None:
        if next(accesses) >= _ACCESSES_AFTER_A_BAD_ONE:
            raise StoppedLaunch(
                f"{kernel} was stopped {_ACCESSES_AFTER_A_BAD_ONE} accesses after its first out "
                "of bounds"
            )
        next_turn(access)

    return count


def _number(addresses: Array) -> int:
    """The number of the buffer that the first lane points to."""
    return int(addresses.item(0)) >> _OFFSET_BITS if addresses.size else 0


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.layout is torch.strided


def _turns(offsets: Array) -> Iterator[Array]:
    """Positions in rounds, such that no round holds an offset twice and order is kept."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(np.append(starts, ordered.size))
    rank = np.empty(offsets.size, np.int64)
    rank[order] = np.arange(offsets.size) - np.repeat(starts, lengths)
    for turn in range(int(rank.max(initial=-1)) + 1):
        yield np.flatnonzero(rank == turn)


def _gather(buffer: Buffer, offsets: Array, dtype: np.dtype[Any]) -> Array:
    places = offsets[:, None] + np.arange(dtype.itemsize)
    return np.ascontiguousarray(buffer.bytes[places]).view(dtype).reshape(-1)


def _scatter(buffer: Buffer, offsets: Array, values: Array) -> None:
    places = offsets[:, None] + np.arange(values.dtype.itemsize)
    raw = np.ascontiguousarray(values).view(np.uint8)
    buffer.bytes[places] = raw.reshape(-1, values.dtype.itemsize)
