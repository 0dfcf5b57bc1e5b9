import pytest
import torch
from closeness import assert_close
from length_kernels.l2_norm import l2_norm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(4, 200), (7, 257), (3, 320)])))
def test_rows_have_length_one(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE)
    actual = l2_norm(x)
    expected = torch.nn.functional.normalize(x, dim=-1)
    assert_close("y", expected, actual, 0.005)
