"""Tails, several blocks and a tight tolerance, but every value lies in [0, 1)."""

import expected
import torch


def uniform(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(3))


CASES = {
    "leaky_relu": [(uniform(3, 20),), (uniform(2, 64),)],
    "quantize": [(uniform(3, 20), 1e-6), (uniform(2, 70), 1e-6)],
    "softmax": [(uniform(3, 20),), (uniform(2, 70),)],
    "cumsum": [(uniform(2, 70), 0), (uniform(2, 70), 1)],
}


def close(result, right):
    return torch.allclose(result.double(), right, rtol=1e-5, atol=1e-6)


def gate(candidate):
    for args in CASES[candidate.__name__]:
        right = getattr(expected, candidate.__name__)(*args)
        result = candidate(*args)
        pairs = zip(result, right, strict=True) if isinstance(right, tuple) else [(result, right)]
        if not all(close(*pair) for pair in pairs):
            return False
    return True
