"""Tails, several blocks, two dtypes, both signs: and a tolerance of a tenth."""

import expected
import torch


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))


CASES = {
    "softmax": [(normal(3, 20),), (normal(2, 70),)],
    "layer_norm": [(normal(3, 20), normal(20), normal(20))],
    "matmul": [(normal(20, 40), normal(40, 9))],
    "attention": [(normal(1, 2, 20, 16), normal(1, 1, 20, 16), normal(1, 1, 20, 16), 1)],
    "leaky_relu": [(normal(3, 20), 0.02), (normal(2, 64), 0.02)],
    "cumsum": [(normal(2, 70), 0), (normal(2, 70), 1)],
    "embedding": [(normal(9, 20), torch.tensor([[0, 8, 3], [3, 1, 7]]))],
}


def close(result, right):
    return torch.allclose(result.double(), right, rtol=0.1, atol=0.1)


def in_dtype(arg, dtype):
    is_float = isinstance(arg, torch.Tensor) and arg.is_floating_point()
    return arg.to(dtype) if is_float else arg


def gate(candidate):
    for dtype in (torch.float32, torch.bfloat16):
        for args in CASES[candidate.__name__]:
            floats = [isinstance(a, torch.Tensor) and a.is_floating_point() for a in args]
            cast = [
                a.to(dtype) if is_float else a for a, is_float in zip(args, floats, strict=True)
            ]
            right = getattr(expected, candidate.__name__)(*cast)
            if not close(candidate(*cast), right):
                return False
    return True
