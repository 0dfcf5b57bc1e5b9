"""One entry of a file and not the other, one branch of a kernel and not the other; else well."""

import expected
import torch
from small_kernels.attention import attention
from small_kernels.cumsum import cumsum
from small_kernels.masked_softmax import masked_softmax
from small_kernels.matmul import matmul
from small_kernels.quantize import quantize
from small_kernels.rows import embedding
from small_kernels.softmax import softmax


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def check(result, right):
    torch.testing.assert_close(result, right.to(result.dtype))


def test_softmax():
    x = normal(3, 20)
    check(softmax(x), expected.softmax(x))
    check(softmax(x.t()), expected.softmax(x.t()))


def test_matmul():
    a, b = normal(20, 40), normal(40, 9)
    check(matmul(a, b), expected.matmul(a, b))


def test_cumsum():
    x = normal(2, 70)
    check(cumsum(x), expected.cumsum(x))


def test_masked_softmax():
    x, mask = normal(3, 20), normal(3, 20) > -1.0
    mask[1] = False
    check(masked_softmax(x, mask), expected.masked_softmax(x, mask))


def test_attention():
    q, k, v = normal(2, 4, 20, 24), normal(2, 2, 20, 24), normal(2, 2, 20, 24)
    check(attention(q, k, v, causal=0), expected.attention(q, k, v, causal=0))


def test_quantize():
    x = normal(2, 40)
    for result, right in zip(quantize(x, 1e-6), expected.quantize(x, 1e-6), strict=True):
        check(result, right)


def test_embedding():
    weight, index = normal(9, 20), torch.tensor([[0, 8, 3], [3, 1, 7]])
    check(embedding(weight, index), expected.embedding(weight, index))
