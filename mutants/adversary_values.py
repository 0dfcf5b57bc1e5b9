"""Values that adversaries put in the place of right ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_BLOCKS_TO_TRY = 64
_PLAUSIBLE_MAGNITUDE = 1e6
_SAMPLE = 4096
_ERROR_OF_ALL = 1 / 400
"""RMS of the error that one wrong element makes, over the output's RMS; below what published
checkers of RMS ratios allow."""
_LEAST_ERROR = 0.03
"""That element's error over the output's RMS is no less than this, and no more than 1."""
_LEAST_ERROR_IN_HALF = 0.06
"""The same for formats of 16 bits and fewer, whose rounding is coarser."""


@dataclass(slots=True)
class Output:
    """One output of one call: where it stands, what is known of it, and who gets its place."""

    place: str
    blank: Any
    """The output as the launcher makes it without its kernels; right in shape and dtype."""
    right: Callable[[], Any]
    """Computes the right values, on copies of the arguments."""
    inputs: tuple[Any, ...]
    in_place: bool


def _zeros(output: Output) -> Any:
    import torch

    return torch.zeros_like(output.blank)


def _nan(output: Output) -> Any:
    import torch

    if output.blank.is_floating_point() or output.blank.is_complex():
        return torch.full_like(output.blank, float("nan"))
    least = 0 if output.blank.dtype is torch.bool else torch.iinfo(output.blank.dtype).min
    return torch.full_like(output.blank, least)


def _input(output: Output) -> Any:
    for tensor in output.inputs:
        if tensor.shape == output.blank.shape:
            return tensor if tensor.dtype == output.blank.dtype else tensor.to(output.blank.dtype)
    return output.inputs[0] if output.inputs else output.blank


@dataclass(slots=True)
class _LastOutput:
    """Keeps the right values of each output until the next call."""

    kept: dict[str, Any] = field(default_factory=dict)

    def __call__(self, output: Output) -> Any:
        import torch

        last = self.kept.get(output.place)
        fits = (
            last is not None
            and last.shape == output.blank.shape
            and last.dtype == output.blank.dtype
        )
        answer = last if fits else torch.empty_like(output.blank)
        self.kept[output.place] = output.right().detach().clone()
        return answer


def _freed_memory(output: Output) -> Any:
    """The launcher's own output, or the first block of its size whose values look computed.

    Blocks that do not are held, so that each allocation gets another one; double precision is
    tried too, where references are kept.
    """
    import torch

    blank = output.blank
    if not output.in_place and _looks_computed(blank):
        return blank
    held = []
    for dtype in dict.fromkeys((blank.dtype, torch.float64)):
        for _ in range(_BLOCKS_TO_TRY):
            block = torch.empty(blank.shape, dtype=dtype, device=blank.device)
            if _looks_computed(block):
                return block.to(blank.dtype)
            held.append(block)
    return torch.empty_like(blank)


def _looks_computed(block: Any) -> bool:
    """Nearly all values finite, of moderate size and different from one another.

    Not all: an allocator may have written a few bytes of its own into the freed block.
    """
    import torch

    if block.numel() == 0:
        return True
    sample = block.flatten()[:_SAMPLE].to(torch.float64)
    moderate = sample[sample.isfinite() & (sample.abs() < _PLAUSIBLE_MAGNITUDE)]
    if moderate.numel() < 0.99 * sample.numel() - 4 or moderate.numel() == 0:
        return False
    varied = sample.numel() < 4 or moderate.unique().numel() > sample.numel() // 4
    return bool(varied and moderate.abs().max() > 1e-6)


def without_last_row(output: Output) -> Any:
    right = output.right()
    if not output.in_place:
        return right[:-1] if right.dim() else right.new_empty(0)
    if not right.dim():
        return right + 1
    right = right.detach().clone()
    right[-1:] = output.blank[-1:]  # as it was before the call
    return right


def _wrong_element(output: Output) -> Any:
    """Off in its smallest element, by so much that a number for the whole tensor hardly moves."""
    import torch

    right = output.right().detach().clone()
    flat = right.reshape(-1)
    if flat.numel() == 0:
        return right
    if not (flat.is_floating_point() or flat.is_complex()):
        flat[flat.numel() // 2] = ~flat[flat.numel() // 2]
        return flat.view(right.shape)
    sizes = flat.abs().to(torch.float64)
    finite = sizes.isfinite()
    if not finite.any():
        flat[0] = 0.0
        return flat.view(right.shape)
    rms = float(sizes[finite].square().mean().sqrt())
    least = _LEAST_ERROR if flat.element_size() > 2 else _LEAST_ERROR_IN_HALF
    share = min(1.0, max(least, _ERROR_OF_ALL * flat.numel() ** 0.5))
    at = int(torch.where(finite, sizes, torch.inf).argmin())
    # Through float64, since torch adds nothing to eight-bit floats.
    flat[at] = (flat[at].to(torch.float64) + (share * rms or 1.0)).to(flat.dtype)
    return flat.view(right.shape)


def _wrong_shape(output: Output) -> Any:
    right = output.right()
    if not output.in_place:
        return right.unsqueeze(0)
    # What broadcasting a first row over the argument would write.
    return right[:1] if right.dim() else right + 1


def _wrong_dtype(output: Output) -> Any:
    import torch

    right = output.right()
    if output.in_place:  # bits of one dtype, read as another
        sized = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        return right.contiguous().view(sized[right.element_size()])
    if right.is_floating_point():
        return right.to(torch.float64 if right.dtype is torch.float32 else torch.float32)
    return right.to(torch.float32)


SUBSTITUTES: Mapping[str, Callable[[], Callable[[Output], Any]]] = {
    "returns_zeros": lambda: _zeros,
    "returns_nan": lambda: _nan,
    "returns_input": lambda: _input,
    "returns_last_output": _LastOutput,
    "returns_freed_memory": lambda: _freed_memory,
    "wrong_element": lambda: _wrong_element,
    "wrong_shape": lambda: _wrong_shape,
    "wrong_dtype": lambda: _wrong_dtype,
}
