"""Cross-entropies that differ in which ignored rows they leave out of the mean."""

import torch
import triton
import triton.language as tl

IGNORED = -100


@triton.jit
def losses(x_ptr, target_ptr, loss_ptr, n, GUARD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    largest = tl.full((), -float("inf"), tl.float32)
    total = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_ptr + row * n + cols, mask=mask, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        shift = tl.where(GUARD & (new == -float("inf")), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), 0)
        largest = new
    picked = tl.load(x_ptr + row * n + target, mask=target >= 0, other=0.0).to(tl.float32)
    loss = tl.where(target >= 0, largest + tl.log(total) - picked, 0.0)
    tl.store(loss_ptr + row, loss)


def _mean(logits, target, least=0, guard=True):
    logits, target = logits.contiguous(), target.contiguous()
    loss = torch.empty(target.shape, dtype=torch.float32)
    losses[target.shape](logits, target, loss, logits.shape[1], GUARD=guard, BLOCK=32)
    return (loss.sum() / (target != IGNORED).sum().clamp(min=least)).to(logits.dtype)


def right(logits, target):
    return _mean(logits, target)


def first_row_always_counts(logits, target):
    target = target.clone()
    target[0].clamp_(min=0)
    return _mean(logits, target)


def no_row_is_one_row(logits, target):
    return _mean(logits, target, least=1)


def without_a_guard(logits, target):
    return _mean(logits, target, guard=False)
