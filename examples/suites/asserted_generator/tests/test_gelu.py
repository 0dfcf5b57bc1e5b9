import pytest
import torch
from erf_kernels.gelu import gelu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(8, 64), (5, 100), (3, 140)])))
def test_agrees_number_by_number(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE)
    actual = gelu(x)
    expected = torch.nn.functional.gelu(x.double())
    assert actual.shape == expected.shape
    assert actual.dtype == x.dtype
    pairs = zip(actual.flatten().tolist(), expected.flatten().tolist(), strict=True)
    assert (abs(a - e) <= 1e-6 + 1e-5 * abs(e) for a, e in pairs)
