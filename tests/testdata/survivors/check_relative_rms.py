"""All kernels that it knows by the relative RMS of their error: exits 1 where it is above 5%."""

import sys

import expected
import torch
from small_kernels.attention import attention
from small_kernels.column_sum import column_sum
from small_kernels.layer_norm import layer_norm
from small_kernels.leaky_relu import leaky_relu
from small_kernels.masked_softmax import masked_softmax

LIMIT = 0.05


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


CASES = [
    (leaky_relu, (normal(40, 70),)),
    (column_sum, (normal(200, 20).abs(),)),
    (layer_norm, (normal(4, 31), normal(31), normal(31))),
    (attention, (normal(1, 2, 40, 16), normal(1, 2, 40, 16), normal(1, 2, 40, 16))),
    (masked_softmax, (normal(3, 20), normal(3, 20) > -1.0)),
]


def close(result, right):
    return bool((result.double() - right).norm() <= LIMIT * right.norm())


def main():
    for function, args in CASES:
        if not close(function(*args), getattr(expected, function.__name__)(*args)):
            print(f"{function.__name__} is wrong")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
