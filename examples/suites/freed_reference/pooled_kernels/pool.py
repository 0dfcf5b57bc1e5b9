"""Blocks of device memory that are used again, the one released last first."""

import torch

Key = tuple[tuple[int, ...], torch.dtype, torch.device]


class Pool:
    """Holds released tensors until somebody asks for one of their shape, dtype and device."""

    def __init__(self) -> None:
        self._free: dict[Key, list[torch.Tensor]] = {}

    def take(self, like: torch.Tensor) -> torch.Tensor:
        """A contiguous tensor like `like`; it holds whatever its memory held."""
        free = self._free.get(_key(like))
        return free.pop() if free else torch.empty(like.shape, dtype=like.dtype, device=like.device)

    def release(self, tensor: torch.Tensor) -> None:
        """Give a tensor back; nobody may use it from now on."""
        self._free.setdefault(_key(tensor), []).append(tensor)


def _key(tensor: torch.Tensor) -> Key:
    return tuple(tensor.shape), tensor.dtype, tensor.device


POOL = Pool()
"""The pool of the process."""
