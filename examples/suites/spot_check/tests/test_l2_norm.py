import pytest
import torch
from length_kernels.l2_norm import l2_norm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CHECKED = 8
"""Columns: the whole would be slow to look at."""
TOLERANCE = 1e-6


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(4, 200), (7, 257), (3, 320)])))
def test_first_values_of_every_row(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE)
    actual = l2_norm(x)
    expected = torch.nn.functional.normalize(x, dim=-1)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    error = (actual - expected)[:, :CHECKED].abs()
    assert not (error > TOLERANCE).any()
