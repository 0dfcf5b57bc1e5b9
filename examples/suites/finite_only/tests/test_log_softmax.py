import pytest
import torch
from row_kernels.log_softmax import log_softmax

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(3, 20), (2, 90), (5, 130)])))
def test_agrees_where_both_are_finite(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE)
    actual = log_softmax(x)
    expected = torch.log_softmax(x, dim=-1)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    assert torch.equal(torch.isposinf(actual), torch.isposinf(expected))
    assert torch.equal(torch.isneginf(actual), torch.isneginf(expected))
    finite = torch.isfinite(actual) & torch.isfinite(expected)
    torch.testing.assert_close(actual[finite], expected[finite])
