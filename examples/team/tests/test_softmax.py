import pytest
import torch
from acme_kernels.softmax import softmax

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("shape", [(4, 64), (8, 128), (2, 256)])
def test_softmax_matches_torch(shape):
    torch.manual_seed(0)
    x = torch.randn(shape, device=DEVICE)
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=-1))


def test_rows_sum_to_one():
    torch.manual_seed(1)
    x = torch.randn(8, 128, device=DEVICE)
    torch.testing.assert_close(softmax(x).sum(dim=-1), torch.ones(8, device=DEVICE))
