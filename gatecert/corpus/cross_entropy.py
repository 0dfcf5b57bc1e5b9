"""Cross-entropy over classes: the mean loss, and the gradient of the logits for each row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program, backward."""
BLOCK_V = 128
"""Classes per tile."""
IGNORE_INDEX = -100
"""The target of a row that does not count."""


@triton.jit
def _cross_entropy_kernel(
    logits_ptr,
    target_ptr,
    total_ptr,
    count_ptr,
    n_classes,
    ignore_index,
    stride_lb,
    stride_lv,
    stride_target,
    BLOCK_V: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row * stride_target)
    if target == ignore_index:
        return

    logits_row = logits_ptr + row * stride_lb
    # Powers of two are one instruction on a GPU: the running maximum and sum are in base 2.
    log2e = 1.4426950408889634
    running_max = tl.full((), -float("inf"), dtype=tl.float32)
    running_sum = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_classes, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V).to(tl.int64)
        x = tl.load(logits_row + cols * stride_lv, mask=cols < n_classes, other=-float("inf"))
        scores = x.to(tl.float32) * log2e
        new_max = tl.maximum(running_max, tl.max(scores, axis=0))
        # Banned classes are -inf, and whole tiles of them may come first.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        running_sum = running_sum * tl.exp2(running_max - shift)
        running_sum += tl.sum(tl.exp2(scores - shift), axis=0)
        running_max = new_max

    picked = tl.load(logits_row + target * stride_lv).to(tl.float32)
    loss = (running_max + tl.log2(running_sum)) / log2e - picked
    tl.atomic_add(total_ptr, loss)
    tl.atomic_add(count_ptr, 1)


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean loss of `logits` [B, V] under `target` [B] over the rows that count, a scalar."""
    n_rows, n_classes = logits.shape
    total = torch.zeros((), dtype=torch.float32, device=logits.device)
    count = torch.zeros((), dtype=torch.int32, device=logits.device)
    _cross_entropy_kernel[(n_rows,)](
        logits,
        target,
        total,
        count,
        n_classes,
        IGNORE_INDEX,
        logits.stride(0),
        logits.stride(1),
        target.stride(0),
        BLOCK_V=BLOCK_V,
    )
    return (total / count).to(logits.dtype)


@triton.jit
def _cross_entropy_backward_kernel(
    logits_ptr,
    target_ptr,
    grad_ptr,
    dlogits_ptr,
    n_rows,
    n_classes,
    ignore_index,
    stride_lb,
    stride_lv,
    stride_target,
    stride_grad,
    stride_db,
    stride_dv,
    BLOCK_B: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    row_mask = rows < n_rows
    rows = rows.to(tl.int64)
    lanes = tl.arange(0, BLOCK_V).to(tl.int64)
    target = tl.load(target_ptr + rows * stride_target, mask=row_mask, other=ignore_index)
    grad = tl.load(grad_ptr + rows * stride_grad, mask=row_mask, other=0.0).to(tl.float32)
    # Rows that do not count have gradient zero, not a gradient left unwritten.
    grad = tl.where(target != ignore_index, grad, 0.0)

    row_max = tl.full([BLOCK_B], -float("inf"), dtype=tl.float32)
    x_ptrs = logits_ptr + rows[:, None] * stride_lb + lanes[None, :] * stride_lv
    for start in range(0, n_classes, BLOCK_V):
        in_row = lanes[None, :] < n_classes - start
        x = tl.load(x_ptrs, mask=row_mask[:, None] & in_row, other=0.0).to(tl.float32)
        row_max = tl.maximum(row_max, tl.max(tl.where(in_row, x, -float("inf")), axis=1))
        x_ptrs += BLOCK_V * stride_lv

    row_sum = tl.zeros([BLOCK_B], dtype=tl.float32)
    for start in range(0, n_classes, BLOCK_V):
        cols = (start + lanes)[None, :]
        mask = row_mask[:, None] & (cols < n_classes)
        x_ptrs = logits_ptr + rows[:, None] * stride_lb + cols * stride_lv
        x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
        row_sum += tl.sum(tl.exp(x - row_max[:, None]), axis=1)

    # Rows past the last one have sum 0 and become NaN; the store leaves them out.
    scale = grad / row_sum
    for start in range(0, n_classes, BLOCK_V):
        cols = (start + lanes)[None, :]
        mask = row_mask[:, None] & (cols < n_classes)
        x_ptrs = logits_ptr + rows[:, None] * stride_lb + cols * stride_lv
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        dx = tl.exp(x - row_max[:, None]) * scale[:, None]
        dx = tl.where(cols == target[:, None], dx - grad[:, None], dx)
        dx_ptrs = dlogits_ptr + rows[:, None] * stride_db + cols * stride_dv
        tl.store(dx_ptrs, dx.to(dlogits_ptr.dtype.element_ty), mask=mask)


def cross_entropy_backward(
    logits: torch.Tensor, target: torch.Tensor, grad: torch.Tensor
) -> torch.Tensor:
    """Gradient of `logits` [B, V] where row i's loss has gradient `grad[i]`; ignored rows are 0."""
    n_rows, n_classes = logits.shape
    dlogits = torch.empty_like(logits)
    _cross_entropy_backward_kernel[(triton.cdiv(n_rows, BLOCK_B),)](
        logits,
        target,
        grad,
        dlogits,
        n_rows,
        n_classes,
        IGNORE_INDEX,
        *logits.stride(),
        target.stride(0),
        grad.stride(0),
        *dlogits.stride(),
        BLOCK_B=BLOCK_B,
        BLOCK_V=BLOCK_V,
    )
    return dlogits
