"""Operations of this example's own: forward and backward passes that Liger fuses.

An operation is its float64 reference; `second` is an independent formulation of it (here:
torch's own loss or norm, differentiated by autograd), `shadow` the size of what one float32
rounding acts on, `mid_shadow` the same for a step that the kernel rounds to the inputs' dtype.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import torch
from torch.nn import functional

from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES

IGNORED = -100
_FLOAT16_NORMAL = 2.0**-14
"""Below it float16 rounds by a fixed step, no longer relatively."""

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
# Upstream gradients and weights stay ordinary while the recipe shapes the data.
Upstream: TypeAlias = Annotated[torch.Tensor, tensor("B N", stand_ins={"*": "normal"})]
Weight: TypeAlias = Annotated[torch.Tensor, tensor("N", stand_ins={"*": "normal"})]

Logits: TypeAlias = Annotated[torch.Tensor, Tensor["B V"]]
Target: TypeAlias = Annotated[torch.Tensor, Tensor.int("B", high="V", marker=IGNORED)]
Positive: TypeAlias = Annotated[torch.Tensor, tensor("V", stand_ins={"*": "uniform01"})]
Loss: TypeAlias = Annotated[torch.Tensor, Tensor[""]]
Index: TypeAlias = Annotated[torch.Tensor, Tensor.int("B", low=-1, high="V")]
# Float32 whatever the inputs are.
WideLoss: TypeAlias = Annotated[torch.Tensor, replace(tensor(""), kind="float32")]
WideRows: TypeAlias = Annotated[torch.Tensor, replace(tensor("B V"), kind="float32")]


def gradients(
    outputs: torch.Tensor | tuple[torch.Tensor, ...],
    inputs: tuple[torch.Tensor, ...],
    upstream: tuple[torch.Tensor, ...] | None = None,
) -> tuple[torch.Tensor, ...]:
    """What autograd finds; `inputs` were made by `leaf`."""
    return torch.autograd.grad(outputs, inputs, upstream)


def leaf(values: torch.Tensor) -> torch.Tensor:
    """A copy in the same layout that gradients are taken of, and that may be overwritten."""
    copy = torch.empty_strided(
        values.shape, values.stride(), dtype=values.dtype, device=values.device
    )
    return copy.copy_(values).requires_grad_()


# softmax --------------------------------------------------------------------------------


def _softmax_by_autograd(x: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, ...]:
    x = leaf(x)
    y = torch.softmax(x, dim=1)
    return y.detach(), *gradients(y, (x,), (dy,))


def _softmax_shadow(
    outputs: tuple[torch.Tensor, torch.Tensor], x: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    p, _ = outputs
    relative = 1 + x.abs() + (p * x.abs()).sum(dim=1, keepdim=True)
    size = dy.abs() + (p * dy.abs() * relative).sum(dim=1, keepdim=True)
    return p * relative, p * relative * size


def _softmax_mid_shadow(
    outputs: tuple[torch.Tensor, torch.Tensor], x: torch.Tensor, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    p, _ = outputs
    size = dy.abs() + (p * dy.abs()).sum(dim=1, keepdim=True)
    return p, (p + _FLOAT16_NORMAL) * size


@operation(
    second=_softmax_by_autograd,
    shadow=_softmax_shadow,
    mid_shadow=_softmax_mid_shadow,
    reduces="N",
    recipes=(*FINITE_RECIPES, "masked_rows", "nonfinite"),
    outputs=("y", "dx"),
)
def softmax_with_gradient(x: Rows, dy: Upstream) -> tuple[Rows, Rows]:
    """Softmax along each row, and its gradient for the upstream gradient dy."""
    y = torch.softmax(x, dim=1)
    return y, y * (dy - (y * dy).sum(dim=1, keepdim=True))


# swiglu ---------------------------------------------------------------------------------


def _swiglu_by_autograd(
    a: torch.Tensor, b: torch.Tensor, dc: torch.Tensor, gate: float
) -> tuple[torch.Tensor, ...]:
    a, b = leaf(a), leaf(b)
    c = functional.silu(gate * a) * b
    return c.detach(), *gradients(c, (a, b), (dc,))


def _swiglu_shadow(
    outputs: Any, a: torch.Tensor, b: torch.Tensor, dc: torch.Tensor, gate: float
) -> tuple[torch.Tensor, ...]:
    z = (gate * a).abs()
    # Where exp(-z) overflows float32, a kernel's sigmoid is 0 instead of below 2^-127.
    sigmoid = torch.sigmoid(gate * a) + 2.0**-102
    silu = (1 + z) * z * sigmoid
    slope = (1 + z) * (1 + z) * sigmoid
    return silu * b.abs(), (dc * b * gate).abs() * slope, dc.abs() * silu


@operation(
    gate=Scalar(0.25, 2.0),
    second=_swiglu_by_autograd,
    shadow=_swiglu_shadow,
    # silu(a) alone is rounded, and in the forward pass only.
    mid_shadow=lambda y, a, b, dc, gate: (y[0].abs(), 0 * a, 0 * b),
    outputs=("c", "da", "db"),
)
def swiglu_with_gradient(
    a: Rows, b: Rows, dc: Upstream, gate: float = 0.75
) -> tuple[Rows, Rows, Rows]:
    """silu(gate a) times b, and its gradients for the upstream gradient dc."""
    z = gate * a
    sigmoid = torch.sigmoid(z)
    slope = sigmoid * (1 + z * (1 - sigmoid))
    return z * sigmoid * b, dc * b * gate * slope, dc * z * sigmoid


# residual add and RMS norm --------------------------------------------------------------


def _add_rms_norm_by_autograd(
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    dy: torch.Tensor,
    ds: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    x, weight = leaf(x), leaf(weight)
    s = x + r
    y = functional.rms_norm(s, (s.shape[1],), weight, eps)
    return y.detach(), s.detach(), *gradients((y, s), (x, weight), (dy, ds))


def _add_rms_norm_sizes(
    outputs: Any,
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    dy: torch.Tensor,
    ds: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    y, s = outputs[0].abs(), outputs[1].abs()
    scale = torch.rsqrt(s.square().mean(dim=1, keepdim=True) + eps)
    m = (dy * weight).abs()
    pulled = scale**3 * (m * s).mean(dim=1, keepdim=True) * s
    # A rounded s moves y, dx and dw; s itself is rounded once.
    return 3 * y, 0 * s, 2 * scale * m + 4 * pulled, 3 * (dy.abs() * s * scale).sum(dim=0)


def _add_rms_norm_shadow(outputs: Any, *args: Any, **scalars: Any) -> tuple[torch.Tensor, ...]:
    y, _, dx, dw = _add_rms_norm_sizes(outputs, *args, **scalars)
    ds = args[4]
    return 2 * y, outputs[1].abs(), 2 * dx + ds.abs(), 2 * dw


@operation(
    eps=Scalar(1e-6, 1e-4, logarithmic=True),
    second=_add_rms_norm_by_autograd,
    shadow=_add_rms_norm_shadow,
    mid_shadow=_add_rms_norm_sizes,
    reduces="N",
    outputs=("y", "s", "dx", "dw"),
)
def add_rms_norm_with_gradient(
    x: Rows, r: Rows, weight: Weight, dy: Upstream, ds: Upstream, eps: float = 1e-6
) -> tuple[Rows, Rows, Rows, Weight]:
    """s = x + r and y = its RMS norm times weight; gradients of x (and r) and of weight."""
    s = x + r
    scale = torch.rsqrt(s.square().mean(dim=1, keepdim=True) + eps)
    m = dy * weight
    dx = scale * m - scale**3 * (m * s).mean(dim=1, keepdim=True) * s + ds
    return s * scale * weight, s, dx, (dy * s * scale).sum(dim=0)


# divergences ----------------------------------------------------------------------------

Probabilities: TypeAlias = Annotated[
    torch.Tensor, tensor("B V", stand_ins={"*": "uniform01", "one_hot": "one_hot"})
]
LogProbabilities: TypeAlias = Annotated[
    torch.Tensor, tensor("B V", stand_ins={"*": "all_negative", "near_zero": "near_zero"})
]
_SMALLEST_PROBABILITY = 1e-10


def _kl_div_by_autograd(
    log_p: torch.Tensor, target: torch.Tensor, log_target: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    log_p = leaf(log_p)
    each = functional.kl_div(log_p, target, reduction="none")
    mean = functional.kl_div(log_p, log_target, reduction="batchmean", log_target=True)
    (each_grad,), (grad,) = gradients(each.sum(), (log_p,)), gradients(mean, (log_p,))
    return each.detach(), each_grad, mean.detach(), grad


def _kl_div_shadow(
    outputs: Any, log_p: torch.Tensor, target: torch.Tensor, log_target: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    logs = target.clamp(min=_SMALLEST_PROBABILITY).log().abs()
    power = log_target.exp() * (1 + log_target.abs())
    return (
        target * (1 + logs + log_p.abs()),
        target,
        (power * (1 + log_target.abs() + log_p.abs())).sum() / len(log_p),
        power / len(log_p),
    )


@operation(
    second=_kl_div_by_autograd,
    shadow=_kl_div_shadow,
    # The mean's gradient is rounded before it is divided by the number of rows.
    mid_shadow=lambda y, log_p, target, log_target: (0 * y[0], 0 * y[1], 0 * y[2], y[3].abs()),
    reduces="V B",
    outputs=("each", "each_gradient", "loss", "gradient"),
)
def kl_div_with_gradient(
    log_p: Logits, target: Probabilities, log_target: LogProbabilities
) -> tuple[WideRows, Logits, WideLoss, Logits]:
    """KL divergence from `target` per element, and from `log_target` averaged over rows."""
    logs = target.clamp(min=_SMALLEST_PROBABILITY).log()
    power = log_target.exp()
    return (
        target * (logs - log_p),
        -target,
        (power * (log_target - log_p)).sum() / len(log_p),
        -power / len(log_p),
    )


def _distance_by_autograd(
    p: torch.Tensor, q: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    p, kept = leaf(p), target != IGNORED
    mean = functional.l1_loss(p[kept], q[kept], reduction="sum") / 2 / kept.sum()
    each = functional.l1_loss(p, q, reduction="none") / 2
    (grad,), (each_grad,) = gradients(mean, (p,)), gradients(each.sum(), (p,))
    return mean.detach(), grad, each.detach(), each_grad


def _distance_shadow(
    outputs: Any, p: torch.Tensor, q: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    loss, grad, each, each_grad = outputs
    return loss, grad.abs(), each, 0 * each_grad


def _distance_mid_shadow(
    outputs: Any, p: torch.Tensor, q: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    loss, grad, each, each_grad = outputs
    return 2 * loss + _FLOAT16_NORMAL, 0 * grad, each + _FLOAT16_NORMAL, 0 * each_grad


@operation(
    second=_distance_by_autograd,
    shadow=_distance_shadow,
    mid_shadow=_distance_mid_shadow,
    reduces="V B",
    outputs=("loss", "gradient", "each", "each_gradient"),
)
def total_variation_with_gradient(
    p: Logits, q: Logits, target: Target
) -> tuple[WideLoss, Logits, WideRows, Logits]:
    """Half of |p - q|: summed per row and averaged over rows with a target, and per element."""
    kept = (target != IGNORED)[:, None].to(p.dtype)
    each, sign = (p - q).abs() / 2, torch.sign(p - q) / 2
    return (each * kept).sum() / kept.sum(), sign * kept / kept.sum(), each, sign


# cross-entropy --------------------------------------------------------------------------


def _smoothed_loss(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor,
    smoothing: float,
    square: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loss with its z-loss, the z-loss, and d loss / d x; rows without a target give zeros.

    With w = weight: (1 - smoothing) w[t] (lse - x[t]) + smoothing / V sum_v w[v] (lse - x[v])
    over the sum of w[t], plus square lse^2 over the number of rows.
    """
    kept = (target != IGNORED)[:, None].to(x.dtype)
    rows = kept.sum()
    chosen = functional.one_hot(target.clamp(min=0), x.shape[1]).to(x.dtype) * kept
    # Every row's mixture of target and smoothing, weighted by class: sums to its own total.
    mixture = weight * ((1 - smoothing) * chosen + smoothing / x.shape[1] * kept)
    mixture = mixture / (chosen * weight).sum()
    lse = torch.logsumexp(x, dim=1, keepdim=True)
    p = torch.softmax(x, dim=1)
    z_loss = (square * lse.square() * kept).sum() / rows
    loss = (mixture * (lse - x)).sum() + z_loss
    total = mixture.sum(dim=1, keepdim=True)
    return loss, z_loss, p * (total + 2 * square * lse * kept / rows) - mixture


def _first_of_the_largest(x: torch.Tensor) -> torch.Tensor:
    place = torch.arange(x.shape[1]).expand_as(x)
    return torch.where(x == x.amax(dim=1, keepdim=True), place, x.shape[1]).amin(dim=1)


def _cross_entropy_by_autograd(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor,
    smoothing: float,
    square: float,
    softcap: float,
) -> tuple[torch.Tensor, ...]:
    logits, kept = leaf(logits), target != IGNORED
    capped = softcap * torch.tanh(logits / softcap)
    found: list[torch.Tensor] = []
    for x, w in ((logits, None), (capped, weight)):
        z_loss = square * torch.logsumexp(x[kept], dim=1).square().mean()
        loss = functional.cross_entropy(
            x, target, w, ignore_index=IGNORED, label_smoothing=smoothing
        )
        grad = gradients(loss + z_loss, (logits,))[0]
        found += [(loss + z_loss).detach(), grad, z_loss.detach()]
    best = torch.from_numpy(logits.detach().numpy().argmax(axis=1))
    hits = (best == target)[kept].double().mean()
    loss, grad, _, capped_loss, capped_grad, z_loss = found
    return loss, grad, hits, best.where(kept, -1), capped_loss, capped_grad, z_loss


def _loss_shadow(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor,
    smoothing: float,
    square: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sizes behind `_smoothed_loss`: everything positive, and lse as uncertain as its terms."""
    kept = (target != IGNORED)[:, None].to(x.dtype)
    rows = kept.sum()
    chosen = functional.one_hot(target.clamp(min=0), x.shape[1]).to(x.dtype) * kept
    mixture = weight * ((1 - smoothing) * chosen + smoothing / x.shape[1] * kept)
    mixture = mixture / (chosen * weight).sum()
    total = mixture.sum(dim=1, keepdim=True)
    p, lse = torch.softmax(x, dim=1), torch.logsumexp(x, dim=1, keepdim=True)
    leaned = (p * x.abs()).sum(dim=1, keepdim=True)
    unsure = 1 + lse.abs() + leaned
    z_loss = (square * kept * (lse.square() + 2 * lse.abs() * unsure)).sum() / rows
    loss = (mixture * (2 * unsure + 2 * x.abs())).sum() + z_loss
    pull = total + 2 * square * kept * (lse.abs() + unsure) / rows
    return loss, z_loss, p * pull * (2 + x.abs() + unsure) + 2 * mixture


def _cross_entropy_shadow(
    outputs: Any,
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor,
    smoothing: float,
    square: float,
    softcap: float,
) -> tuple[torch.Tensor, ...]:
    tanh = torch.tanh(logits / softcap)
    ones = torch.ones_like(weight)
    loss, _, grad = _loss_shadow(logits, target, ones, smoothing, square)
    capped = _loss_shadow(softcap * tanh, target, weight, smoothing, square)
    # 1 - tanh^2 cancels.
    return (loss, grad, loss * 0 + 1, target, capped[0], capped[2] * (1 + tanh**2), capped[1])


def _cross_entropy_mid_shadow(outputs: Any, *args: Any, **scalars: Any) -> tuple[torch.Tensor, ...]:
    loss, grad, hits, best, capped, capped_grad, z_loss = outputs
    # Each row's loss is rounded before the rows are summed; gradients are rounded once.
    return loss, 0 * grad, 0 * hits, 0 * best, capped, 0 * capped_grad, z_loss


@operation(
    smoothing=Scalar(0.05, 0.3),
    square=Scalar(1e-4, 1e-2, logarithmic=True),
    softcap=Scalar(20.0, 50.0),
    second=_cross_entropy_by_autograd,
    shadow=_cross_entropy_shadow,
    mid_shadow=_cross_entropy_mid_shadow,
    reduces="V B",
    outputs=("loss", "gradient", "hits", "best", "capped", "capped_gradient", "z_loss"),
)
def cross_entropy_with_gradient(
    logits: Logits,
    target: Target,
    weight: Positive,
    smoothing: float = 0.1,
    square: float = 1e-3,
    softcap: float = 30.0,
) -> tuple[Loss, Logits, WideLoss, Index, Loss, Logits, Loss]:
    """Smoothed cross-entropy with z-loss; then of soft-capped logits with class weights.

    Of the first also the share of rows whose largest logit is the target, and its place
    (-1 without a target); of the second also the z-loss alone.
    """
    kept = target != IGNORED
    tanh = torch.tanh(logits / softcap)
    loss, _, grad = _smoothed_loss(logits, target, torch.ones_like(weight), smoothing, square)
    capped, z_loss, inner = _smoothed_loss(softcap * tanh, target, weight, smoothing, square)
    best = _first_of_the_largest(logits)
    hits = (best == target).double().sum() / kept.sum()
    return loss, grad, hits, best.where(kept, -1), capped, inner * (1 - tanh**2), z_loss
