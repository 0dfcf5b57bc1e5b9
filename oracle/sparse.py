"""Memory with billions of elements of which a few exist: for strides that leave 32 bits.

A tensor whose last element lies past 2^31 spans gigabytes. Here only the pages that somebody
touches take room; the others read as zeros. So gaps hold 0, not NaN, and what was written into
them can be found again among the touched pages. Linux only.
"""

from __future__ import annotations

import ctypes
import mmap
import resource
import weakref
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import EnvironmentFailure

SPARSE_FROM = 2**30
"""Bytes from which a tensor lies in sparse memory."""
_NO_RESERVE = 0x4000
"""MAP_NORESERVE of Linux, which Python's mmap does not name: no promise of memory is made."""
_SIZES: dict[int, int] = {}
"""Bytes of each mapping by its address."""


def sparse_memory(elements: int, dtype: torch.dtype) -> torch.Tensor:
    """A vector of zeros that takes room only where it is touched.

    Raises:
        EnvironmentFailure: the machine cannot map that much.
    """
    size = elements * dtype.itemsize
    _allow(size)
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        mapped = _Mapping(-1, size, flags=flags)
        mapped.madvise(mmap.MADV_NOHUGEPAGE)
    except (OSError, AttributeError) as error:
        _allow(-size)
        raise EnvironmentFailure(
            f"{size >> 30} GiB of sparse memory cannot be mapped: {error}; leave out the layout "
            "far_span on this machine"
        ) from error
    vector = torch.frombuffer(mapped, dtype=dtype)
    address = vector.untyped_storage().data_ptr()
    _SIZES[address] = size
    weakref.finalize(mapped, _forget, address)
    return vector


def is_sparse(tensor: torch.Tensor) -> bool:
    """Whether the tensor lies in sparse memory."""
    return tensor.device.type == "cpu" and tensor.untyped_storage().data_ptr() in _SIZES


def nonzero_gaps(tensor: torch.Tensor) -> npt.NDArray[np.int64]:
    """Where bytes that belong to no element differ from 0, as (offset, value) pairs."""
    item = tensor.element_size()
    places = np.full((1,) * tensor.dim(), tensor.storage_offset(), np.int64)
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        steps = np.arange(size, dtype=np.int64) * stride
        places = places + steps.reshape([-1 if at == axis else 1 for at in range(tensor.dim())])
    own = np.unique(places.reshape(-1, 1) * item + np.arange(item))
    found = [np.empty((0, 2), np.int64)]
    address = tensor.untyped_storage().data_ptr()
    for start, data in _touched(address, _SIZES[address]):
        at = np.flatnonzero(data)
        at = at[~np.isin(at + start, own)]
        found.append(np.stack([at + start, data[at].astype(np.int64)], axis=1))
    return np.concatenate(found)


class _Mapping(mmap.mmap):
    """A mapping that can be watched until nobody has it any more."""


def _touched(address: int, size: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """The pages that are there: their offset and bytes."""
    pages = -(-size // mmap.PAGESIZE)
    there = np.zeros(pages, np.uint8)
    ask = ctypes.CDLL(None, use_errno=True).mincore
    ask.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    if ask(address, size, there.ctypes.data) != 0:
        raise EnvironmentFailure(f"mincore failed with errno {ctypes.get_errno()}")
    for page in np.flatnonzero(there & 1).tolist():
        start = page * mmap.PAGESIZE
        length = min(mmap.PAGESIZE, size - start)
        raw = (ctypes.c_uint8 * length).from_address(address + start)
        yield start, np.frombuffer(memoryview(raw), np.uint8)


def _allow(size: int) -> None:
    """Room in a limited address space: what is mapped here takes next to no memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        room = soft + size if hard == resource.RLIM_INFINITY else min(soft + size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (room, hard))


def _forget(address: int) -> None:
    _allow(-_SIZES.pop(address))
