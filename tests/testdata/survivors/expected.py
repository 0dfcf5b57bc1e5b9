"""What the kernels should give: plain PyTorch in float64, by the name of the entry."""

import torch
from torch.nn import functional


def softmax(x):
    return torch.softmax(x.double(), dim=1)


softmax_long = softmax


def matmul(a, b):
    return a.double() @ b.double()


matmul_split = matmul


def layer_norm(x, weight, bias, eps=1e-5):
    return functional.layer_norm(x.double(), (x.shape[1],), weight.double(), bias.double(), eps)


def column_sum(x):
    return x.double().sum(dim=0)


def leaky_relu(x, slope=0.01):
    return torch.where(x > 0, x.double(), slope * x.double())


def embedding(weight, index):
    return weight.double()[index]


def scatter_rows(x, slots, count):
    y = torch.zeros(count, x.shape[1], dtype=torch.float64)
    y[slots[slots >= 0]] = x.double()[slots >= 0]
    return y


def cumsum(x, reverse=0):
    x = x.double()
    return x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)


def attention(q, k, v, causal=1):
    group = q.shape[1] // k.shape[1]
    k, v = (t.double().repeat_interleave(group, dim=1) for t in (k, v))
    scores = q.double() @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def masked_softmax(x, mask, bias=None):
    scores = x.double() if bias is None else x.double() + bias.double()
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=1)
    return torch.where(mask.any(dim=1, keepdim=True), weights, 0.0)


def quantize(x, eps):
    largest = x.double().abs().amax(dim=1).clamp(min=eps)
    return torch.round(x.double() / largest[:, None] * 127), largest / 127


def segment_sum(x, segments, count):
    return torch.zeros(count, x.shape[1], dtype=torch.float64).index_add(0, segments, x.double())


def row_moments(x):
    x = x.double()
    return x.sum(dim=1), x.mean(dim=1), x.var(dim=1, unbiased=False)


def difference(x):
    x = x.double()
    return functional.pad(x[:, 1:], (0, 1)) - x
