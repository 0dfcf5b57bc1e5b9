"""One shape per kernel, a whole block of contiguous float32; what is compared is compared well."""

import expected
import torch
from small_kernels.attention import attention
from small_kernels.column_sum import column_sum
from small_kernels.cumsum import cumsum
from small_kernels.layer_norm import layer_norm
from small_kernels.leaky_relu import leaky_relu
from small_kernels.masked_softmax import masked_softmax
from small_kernels.matmul import matmul
from small_kernels.softmax import softmax, softmax_long


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def check(function, *args):
    right = getattr(expected, function.__name__)(*args).float()
    torch.testing.assert_close(function(*args), right)


def test_softmax():
    check(softmax, normal(2, 32))


def test_softmax_long():
    check(softmax_long, normal(2, 32))


def test_matmul():
    check(matmul, normal(16, 32), normal(32, 16))


def test_layer_norm():
    check(layer_norm, normal(2, 32), normal(32), normal(32))


def test_column_sum():
    check(column_sum, normal(16, 32))


def test_leaky_relu():
    check(leaky_relu, normal(2, 64))


def test_cumsum():
    check(cumsum, normal(2, 64))


def test_attention():
    check(attention, *normal(3, 1, 2, 16, 16))


def test_masked_softmax():
    check(masked_softmax, normal(2, 32), normal(2, 32) > -1.0, normal(32))
