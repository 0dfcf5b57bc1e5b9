"""The corpus's operations in float64 and what to try them on; nothing is shared with the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = tuple[Shape, ...]
Maker: TypeAlias = Callable[[Shapes, torch.Generator], torch.Tensor]

EPS = 1e-5
SLOPE = 0.02
IGNORED = -100
GROUPS = 3
SEGMENTS = 5

ROWS = [(1, 1), (2, 7), (5, 127), (4, 128), (3, 129), (2, 389)]
MATRICES = [(1, 1, 1), (7, 5, 3), (33, 31, 32), (32, 65, 34), (70, 97, 33), (161, 8, 33)]
HEADS = [(1, 1, 1, 1, 1), (2, 3, 5, 70, 16), (2, 2, 33, 35, 40), (1, 1, 70, 97, 8)]
SEQUENCES = [(1, 1, 1, 2), (2, 3, 2, 4), (1, 9, 64, 3), (2, 11, 133, 4), (3, 8, 65, 2)]
BATCHES = [1, 2, 3, 2, 1, 2]
IMAGES = [(1, 3, 1), (2, 3, 7), (1, 6, 129), (2, 9, 85), (3, 12, 31)]


@dataclass(frozen=True, slots=True)
class Formula:
    """An operation: its float64 form, the shapes of its tensors (a tail shape last but one).

    `outputs` names the dtype of each output, `"input"` for that of the inputs. `makers` make
    the inputs, by place, that are not simply normal. The first `destinations` inputs receive the
    outputs. `terms` is how many times the largest output the terms of its sums may be.
    """

    reference: Callable[..., Any]
    shapes: Sequence[Shapes]
    scalars: tuple[Any, ...] = ()
    outputs: tuple[str, ...] = ("input",)
    makers: Mapping[int, Maker] = field(default_factory=dict)
    destinations: int = 0
    terms: float = 1.0


def softmax(x: torch.Tensor) -> torch.Tensor:
    weights = (x - x.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    return x - x.logsumexp(-1, keepdim=True)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * weight + bias


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / ((x * x).mean(-1, keepdim=True) + eps).sqrt() * weight


def l2_norm(x: torch.Tensor, eps: float) -> torch.Tensor:
    return x / x.norm(dim=-1, keepdim=True).clamp(min=eps)


def group_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, groups: int, eps: float
) -> torch.Tensor:
    apart = x.unflatten(1, (groups, -1))
    variance, mean = torch.var_mean(apart, (2, 3), correction=0, keepdim=True)
    return ((apart - mean) / (variance + eps).sqrt()).flatten(1, 2) * weight[:, None] + bias[
        :, None
    ]


def gradients_of(forward: Callable[..., torch.Tensor], biased: bool) -> Callable[..., Any]:
    """Gradients of a norm's input, weight and (where `biased`) bias, by autograd."""

    def backward(
        dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        vectors = (weight, torch.zeros_like(weight)) if biased else (weight,)
        leaves = [tensor.clone().requires_grad_() for tensor in (x, *vectors)]
        return torch.autograd.grad(forward(*leaves, eps), leaves, dy)

    return backward


def row_moments(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    variance, mean = torch.var_mean(x, -1, correction=0)
    return x.sum(-1), mean, variance


def cumsum_to_the_end(x: torch.Tensor, reverse: bool) -> torch.Tensor:
    return x.sum(-1, keepdim=True) - x.cumsum(-1) + x if reverse else x.cumsum(-1)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return softmax(q @ k.mT / math.sqrt(q.shape[-1])) @ v


def attention_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return softmax(scores.masked_fill(later, -math.inf)) @ v


def attention_grouped_query(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: int
) -> torch.Tensor:
    form = attention_causal if causal else attention
    apart = q.unflatten(1, (k.shape[1], -1)).unbind(2)
    return torch.stack([form(part, k, v) for part in apart], 2).flatten(1, 2)


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, causal: int
) -> tuple[torch.Tensor, ...]:
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    form = attention_causal if causal else attention
    return torch.autograd.grad(form(*leaves), leaves, dout)


def causal_conv1d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, silu: int
) -> torch.Tensor:
    channels, width = weight.shape
    z = torch.nn.functional.conv1d(x, weight[:, None], bias, padding=width - 1, groups=channels)[
        ..., : x.shape[-1]
    ]
    return torch.nn.functional.silu(z) if silu else z


def gelu_erf(x: torch.Tensor) -> torch.Tensor:
    return x * torch.special.ndtr(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def leaky_relu(x: torch.Tensor, slope: float) -> torch.Tensor:
    return torch.where(x > 0, x, slope * x)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a / (1 + torch.exp(-a)) * b


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return gelu_tanh(a) * b


def silu(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + torch.exp(-x))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    kept = target != IGNORED
    chosen = logits[kept].gather(1, target[kept].unsqueeze(1)).squeeze(1)
    return (logits[kept].logsumexp(-1) - chosen).mean()


def cross_entropy_backward(
    logits: torch.Tensor, target: torch.Tensor, grad: torch.Tensor
) -> torch.Tensor:
    leaf = logits.clone().requires_grad_()
    kept = target != IGNORED
    chosen = leaf[kept].gather(1, target[kept].unsqueeze(1)).squeeze(1)
    losses = leaf[kept].logsumexp(-1) - chosen
    return torch.autograd.grad(losses, leaf, grad[kept])[0]


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.tensor_split(2, -1)
    turned = torch.cat([-second, first], -1)
    return x * torch.cat([cos, cos], -1) + turned * torch.cat([sin, sin], -1)


def quantize_int8(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Values before they are rounded, and scales."""
    scale = x.abs().amax(-1).clamp(min=eps) / 127
    return x / scale[:, None], scale


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    numbers = torch.tensor([philox(seed, place) for place in range(x.numel())])
    folded = torch.where(numbers < 2**31, numbers, 2**32 - 1 - numbers)
    kept = folded.float() * 4.6566127342e-10 > torch.tensor(p, dtype=torch.float32)
    return x * kept.view(x.shape) / (1 - p)


def philox(seed: int, place: int) -> int:
    """First word of ten rounds of Philox-4x32 from the counter (place, 0, 0, 0)."""
    x0, x1, x2, x3 = place, 0, 0, 0
    for turn in range(10):
        one, two = x0 * 0xD2511F53, x2 * 0xCD9E8D57
        low = (seed + turn * 0x9E3779B9) % 2**32
        high = turn * 0xBB67AE85 % 2**32
        x0, x1 = (two >> 32) ^ x1 ^ low, two % 2**32
        x2, x3 = (one >> 32) ^ x3 ^ high, one % 2**32
    return x0


def softmax_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(softmax(leaf), leaf, dy)[0]


def masked_softmax(x: torch.Tensor, mask: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    weights = (x + bias - (x + bias).amax(-1, keepdim=True)).exp() * mask
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-300)


def attention_varlen(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, offsets: torch.Tensor, *flags: int
) -> tuple[torch.Tensor, ...]:
    """One dense attention in which nobody sees another sequence, or a later key."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    owner = torch.bucketize(torch.arange(len(q)), offsets[1:].contiguous(), right=True)
    hidden = (owner[:, None] != owner) | torch.ones(len(q), len(q), dtype=torch.bool).triu(1)
    scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(hidden, -math.inf)
    return torch.einsum("hqk,khd->qhd", softmax(scores), v), scores.logsumexp(-1).T


def paged_attention(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """All pages of a row, of which a mask lets through the first keys."""
    group = q.shape[1] // keys.shape[2]
    k, v = (cache[table].flatten(1, 2).repeat_interleave(group, 2) for cache in (keys, values))
    seen = torch.arange(k.shape[1]) < lengths[:, None]
    powers = (torch.einsum("bhd,bthd->bht", q, k) / math.sqrt(q.shape[-1])).exp()
    powers = powers * seen[:, None]
    total = powers.sum(-1, keepdim=True)
    return torch.einsum("bht,bthd->bhd", powers / total.clamp(min=1e-300), v)


def add_rms_norm(
    out: torch.Tensor,
    residual_out: torch.Tensor,
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    return rms_norm(x + residual, weight, eps), x + residual


def quantize_fp8(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    scale = x.abs().amax(-1).clamp(min=eps) / 448
    return x / scale[:, None], scale


def some(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    """A mask; it hides the whole first row."""
    mask = torch.rand(shapes[1], generator=generator) < 0.5
    mask[:1] = False
    return mask


def cuts(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    """Offsets of sequences, of which one is empty where there are several."""
    total, count = shapes[0][0], shapes[3][0] - 1
    inner = torch.randint(total + 1, (count - 1,), generator=generator).sort().values
    inner[1:2] = inner[:1] if count > 2 else inner[1:2]
    return torch.cat([torch.tensor([0]), inner, torch.tensor([total])]).to(torch.int32)


def segments(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(SEGMENTS, shapes[1], generator=generator).sort().values


def table(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    rows, columns = shapes[3]
    order = torch.randperm(shapes[1][0], generator=generator)
    return order[: rows * columns].view(rows, columns).to(torch.int32)


def lengths(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    most = shapes[3][1] * shapes[1][1]
    found = torch.randint(most + 1, shapes[4], generator=generator).to(torch.int32)
    found[:1] = 0 if len(found) > 2 else most
    return found


def eight_bit_floats(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shapes[0], generator=generator).mul_(50).to(torch.float8_e5m2)


def codes(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(-127, 128, shapes[0], generator=generator, dtype=torch.int8)


def tokens(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(shapes[0][0], shapes[1], generator=generator)


def targets(shapes: Shapes, generator: torch.Generator) -> torch.Tensor:
    """A class for every row; the second row is ignored."""
    rows, classes = shapes[0]
    target = torch.randint(classes, (rows,), generator=generator)
    target[1:2] = IGNORED
    return target


def rows_with(matrices: int, vectors: int) -> list[Shapes]:
    """So many matrices [B, N], then so many vectors [N]."""
    return [((b, n),) * matrices + ((n,),) * vectors for b, n in ROWS]


FORMULAS: dict[str, Formula] = {
    "softmax": Formula(softmax, rows_with(1, 0)),
    "log_softmax": Formula(log_softmax, rows_with(1, 0)),
    "layer_norm": Formula(layer_norm, rows_with(1, 2), (EPS,)),
    "rms_norm": Formula(rms_norm, rows_with(1, 1), (EPS,)),
    "l2_norm": Formula(l2_norm, rows_with(1, 0), (EPS,)),
    "group_norm": Formula(
        group_norm, [((b, c, s), (c,), (c,)) for b, c, s in IMAGES], (GROUPS, EPS)
    ),
    "layer_norm_backward": Formula(
        gradients_of(layer_norm, biased=True), rows_with(2, 1), (EPS,), ("input",) * 3
    ),
    "rms_norm_backward": Formula(
        gradients_of(rms_norm, biased=False), rows_with(2, 1), (EPS,), ("input",) * 2
    ),
    "row_moments": Formula(row_moments, rows_with(1, 0), outputs=("float32",) * 3),
    "argmax": Formula(lambda x: x.argmax(-1), rows_with(1, 0), outputs=("int64",)),
    "cumsum": Formula(cumsum_to_the_end, rows_with(1, 0), (True,)),
    "matmul": Formula(torch.matmul, [((m, k), (k, n)) for m, k, n in MATRICES]),
    "attention": Formula(
        attention, [((b, h, s, d), (b, h, t, d), (b, h, t, d)) for b, h, s, t, d in HEADS]
    ),
    "attention_causal": Formula(attention_causal, [((b, h, s, d),) * 3 for b, h, s, _, d in HEADS]),
    "matmul_batched": Formula(
        torch.matmul,
        [((b, m, k), (b, k, n)) for b, (m, k, n) in zip(BATCHES, MATRICES, strict=True)],
    ),
    "attention_grouped_query": Formula(
        attention_grouped_query,
        [((b, 2 * h, s, d), (b, h, t, d), (b, h, t, d)) for b, h, s, t, d in HEADS],
        (1,),
    ),
    "attention_backward": Formula(
        attention_backward,
        [((b, h, s, d), (b, h, t, d), (b, h, t, d), (b, h, s, d)) for b, h, s, t, d in HEADS],
        (1,),
        ("input",) * 3,
        terms=4.0,  # of weights whose gradient is a difference of two sums
    ),
    "causal_conv1d": Formula(
        causal_conv1d, [((b, c, s), (c, w), (c,)) for b, c, s, w in SEQUENCES], (1,)
    ),
    "gelu_erf": Formula(gelu_erf, rows_with(1, 0)),
    "gelu_tanh": Formula(gelu_tanh, rows_with(1, 0)),
    "leaky_relu": Formula(leaky_relu, rows_with(1, 0), (SLOPE,)),
    "swiglu": Formula(swiglu, rows_with(2, 0)),
    "geglu": Formula(geglu, rows_with(2, 0)),
    "cross_entropy": Formula(cross_entropy, [((b, n), (b,)) for b, n in ROWS], makers={1: targets}),
    "silu": Formula(silu, rows_with(1, 0)),
    "cross_entropy_backward": Formula(
        cross_entropy_backward, [((b, n), (b,), (b,)) for b, n in ROWS], makers={1: targets}
    ),
    "rope": Formula(rope, [((b, h, s, 2 * d), (s, d), (s, d)) for b, h, s, _, d in HEADS]),
    "embedding": Formula(
        lambda weight, index: weight[index],
        [((9, n), (b, 3)) for b, n in ROWS],
        makers={1: tokens},
    ),
    "transpose": Formula(lambda x: x.T, [((m, n),) for m, _, n in MATRICES]),
    "quantize_int8": Formula(quantize_int8, rows_with(1, 0), (EPS,), outputs=("int8", "float32")),
    "dequantize_int8": Formula(
        lambda values, scale: values * scale[:, None],
        [((b, n), (b,)) for b, n in ROWS],
        makers={0: codes},
    ),
    "softmax_backward": Formula(softmax_backward, rows_with(2, 0)),
    "masked_softmax": Formula(
        masked_softmax, [((b, n), (b, n), (n,)) for b, n in ROWS], makers={1: some}
    ),
    "attention_varlen": Formula(
        attention_varlen,
        [((b * s, 2 * h, d), (b * s, h, d), (b * s, h, d), (b + 2,)) for b, h, s, _, d in HEADS],
        (1, 1),
        ("input", "float32"),
        makers={3: cuts},
    ),
    "segment_sum": Formula(
        lambda x, segments, count: torch.stack([x[segments == s].sum(0) for s in range(count)]),
        [((b * 7, n), (b * 7,)) for b, n in ROWS],
        (SEGMENTS,),
        makers={1: segments},
    ),
    "paged_attention": Formula(
        paged_attention,
        [
            ((b, 2 * h, d), (4 * b + 2, 8, h, d), (4 * b + 2, 8, h, d), (b, 4), (b,))
            for b, h, _, _, d in [*HEADS, (3, 2, 1, 1, 24), (4, 1, 1, 1, 40)]
        ],
        makers={3: table, 4: lengths},
    ),
    "add_rms_norm": Formula(
        add_rms_norm,
        rows_with(4, 1),
        (EPS,),
        ("input",) * 2,
        destinations=2,
    ),
    "quantize_fp8": Formula(
        quantize_fp8, rows_with(1, 0), (EPS,), outputs=("float8_e4m3fn", "float32")
    ),
    "dequantize_fp8": Formula(
        lambda values, scale: values * scale[:, None],
        [((b, n), (b,)) for b, n in ROWS],
        makers={0: eight_bit_floats},
    ),
    "dropout": Formula(dropout, rows_with(1, 0), (0.3, 2**31 - 1)),
}
