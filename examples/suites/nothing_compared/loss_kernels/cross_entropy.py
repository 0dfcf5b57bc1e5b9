"""Cross-entropy over classes: a program takes a row, tile by tile."""

import torch
import triton
import triton.language as tl

BLOCK_V = 64
"""Classes per tile."""
IGNORED = -100
"""The target of a row that does not count."""


@triton.jit
def _cross_entropy_kernel(
    logits_ptr,
    target_ptr,
    loss_ptr,
    n_classes,
    ignored,
    logits_row_stride,
    BLOCK_V: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * logits_row_stride
    target = tl.load(target_ptr + row)
    counts = target != ignored

    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_classes, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V)
        x = tl.load(logits_row + cols, mask=cols < n_classes, other=-float("inf"))
        x = x.to(tl.float32)
        new_largest = tl.maximum(largest, tl.max(x, axis=0))
        # While all values so far are -inf there is nothing to shift by.
        shift = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
        largest = new_largest

    picked = tl.load(logits_row + target, mask=counts, other=0.0).to(tl.float32)
    loss = tl.where(counts, tl.log(total) + largest - picked, 0.0)
    tl.store(loss_ptr + row, loss)


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean loss of contiguous `logits` [B, V] under `target` [B] over the rows that count."""
    n_rows, n_classes = logits.shape
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    _cross_entropy_kernel[(n_rows,)](
        logits, target, losses, n_classes, IGNORED, logits.stride(0), BLOCK_V=BLOCK_V
    )
    return (losses.sum() / (target != IGNORED).sum()).to(logits.dtype)
