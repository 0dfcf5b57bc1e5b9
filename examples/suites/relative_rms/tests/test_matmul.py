import pytest
import torch
from gemm_kernels.matmul import matmul

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def difference(x: torch.Tensor, y: torch.Tensor) -> float:
    """How far two matrices are from each other as wholes: 0 is equal, 1 is unrelated."""
    x, y = x.double(), y.double()
    return (1 - 2 * (x * y).sum() / (x.square() + y.square()).sum()).item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    ("seed", "sizes"), list(enumerate([(96, 64, 96), (100, 70, 80), (33, 130, 96)]))
)
def test_product_points_the_same_way(dtype, seed, sizes):
    torch.manual_seed(100 * seed + dtype.itemsize)
    m, k, n = sizes
    a = torch.randn(m, k, device=DEVICE).to(dtype)
    b = torch.randn(k, n, device=DEVICE).to(dtype)
    actual = matmul(a, b)
    expected = a.float() @ b.float()
    assert actual.shape == expected.shape
    assert actual.dtype == dtype
    assert difference(actual, expected) < 1e-3
