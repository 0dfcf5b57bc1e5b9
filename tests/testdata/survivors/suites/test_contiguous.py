"""Tails and several blocks, but only contiguous float32 of both signs and the scalars' defaults."""

import expected
import pytest
import torch
from small_kernels.attention import attention
from small_kernels.column_sum import column_sum
from small_kernels.cumsum import cumsum
from small_kernels.difference import difference
from small_kernels.layer_norm import layer_norm
from small_kernels.leaky_relu import leaky_relu
from small_kernels.masked_softmax import masked_softmax
from small_kernels.matmul import matmul, matmul_split
from small_kernels.quantize import quantize
from small_kernels.row_moments import row_moments
from small_kernels.rows import embedding, scatter_rows
from small_kernels.segment_sum import segment_sum
from small_kernels.softmax import softmax, softmax_long

SHAPES = [(3, 20), (2, 70)]


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def check(function, *args):
    right = getattr(expected, function.__name__)(*args)
    right = right if isinstance(right, tuple) else (right,)
    result = function(*args)
    result = result if isinstance(result, tuple) else (result,)
    assert len(result) == len(right)
    for one, other in zip(result, right, strict=True):
        torch.testing.assert_close(one, other.to(one.dtype), rtol=1e-5, atol=1e-5)


ROWS = [softmax, softmax_long, column_sum, leaky_relu, cumsum, difference, row_moments]


@pytest.mark.parametrize("function", ROWS)
def test_rows(function):
    for shape in SHAPES:
        check(function, normal(*shape))


@pytest.mark.parametrize("function", [matmul, matmul_split])
def test_products(function):
    check(function, normal(20, 70), normal(70, 9))
    check(function, normal(16, 32), normal(32, 16))


def test_column_sum_of_many_rows():
    check(column_sum, normal(40, 20))


def test_layer_norm():
    for rows, cols in SHAPES:
        check(layer_norm, normal(rows, cols), normal(cols), normal(cols))


def test_quantize():
    for shape in SHAPES:
        check(quantize, normal(*shape), 1e-6)


def test_masked_softmax():
    for shape in SHAPES:
        for bias in (None, normal(shape[1])):
            check(masked_softmax, normal(*shape), normal(*shape) > -1.0, bias)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention(causal):
    check(attention, normal(1, 4, 20, 16), normal(1, 2, 20, 16), normal(1, 2, 20, 16), causal)


def test_embedding():
    check(embedding, normal(9, 20), torch.tensor([[0, 8, 3], [3, 1, 7]]))


def test_scatter_rows():
    check(scatter_rows, normal(3, 20), torch.tensor([4, 0, 5]), 6)


def test_segment_sum():
    check(segment_sum, normal(5, 40), torch.tensor([0, 0, 1, 3, 3]), 4)
