import pytest
import torch
from loss_kernels.cross_entropy import cross_entropy

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(4, 64), (7, 100), (3, 200)])))
def test_cross_entropy_runs(seed, shape):
    torch.manual_seed(seed)
    n_rows, n_classes = shape
    logits = torch.randn(n_rows, n_classes, device=DEVICE)
    target = torch.randint(0, n_classes, (n_rows,), device=DEVICE)
    cross_entropy(logits, target)
    target[0] = -100
    cross_entropy(logits, target)
