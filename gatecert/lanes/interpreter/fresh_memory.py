"""What memory that nobody initialised holds, where a run must be repeatable.

The heap's leftovers differ from process to process, and with them what a gate without poison
says of an output left unwritten. Here they are plausible values instead, the same in every run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

_PERIOD = 1021
"""A prime, so that leftovers do not line up with rows or blocks."""
_LARGEST = 3.0
_LEFTOVERS = np.random.default_rng(0).uniform(-1.0, 1.0, _PERIOD)
_MAKERS = frozenset(
    {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.empty_permuted,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }
)


@contextlib.contextmanager
def repeatable_memory(largest: float = _LARGEST) -> Iterator[None]:
    """Tensors that torch makes without initialising them hold finite values of both signs, unless
    torch itself fills them, as it does where deterministic algorithms are asked for."""
    with _Filled(largest):
        yield


class _Filled(TorchFunctionMode):
    """Fills what torch's makers of uninitialised tensors give."""

    def __init__(self, largest: float) -> None:
        super().__init__()
        self._largest = largest

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _MAKERS and _is_fillable(result) and not _fills_itself():
            _fill(result, self._largest)
        return result


def _is_fillable(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided:
        return False
    # While a graph is captured, a copy from the host would end the capture.
    on_gpu = tensor.is_cuda and not torch.cuda.is_current_stream_capturing()
    return on_gpu or tensor.device.type == "cpu"


def _fills_itself() -> bool:
    asked = torch.are_deterministic_algorithms_enabled()
    return asked and bool(getattr(torch.utils.deterministic, "fill_uninitialized_memory", False))


@functools.cache
def _leftovers_on(device: torch.device, largest: float) -> torch.Tensor:
    return torch.from_numpy(_LEFTOVERS * largest).to(device)


def _fill(tensor: torch.Tensor, largest: float) -> None:
    # Dtypes that nothing can be copied to, views whose elements share memory, and what would take
    # the last of a GPU's memory stay as they are.
    with torch.no_grad(), contextlib.suppress(RuntimeError):
        periods = -(-tensor.numel() // _PERIOD)
        values = _leftovers_on(tensor.device, largest).repeat(periods)[: tensor.numel()]
        # The storage may be larger than the view; what a gate can see of it is filled.
        tensor.copy_(values.view(tensor.shape))
