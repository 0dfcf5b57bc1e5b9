import pytest
import torch
from softmax_kernels.softmax import softmax

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
XS, S, M, L = 3, 5, 10, 20
"""Sizes of sample inputs."""


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(S, M), (XS, L), (S, S), (1, L)])))
def test_matches_torch_on_a_sample(seed, shape):
    torch.manual_seed(seed)
    x = torch.testing.make_tensor(shape, dtype=torch.float32, device=DEVICE)
    actual = softmax(x)
    torch.testing.assert_close(actual, torch.softmax(x, dim=-1))
