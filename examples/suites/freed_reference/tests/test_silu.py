import pytest
import torch
from pooled_kernels.pool import POOL
from pooled_kernels.silu import silu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TRIALS = 3


def reference(x: torch.Tensor) -> torch.Tensor:
    """Computed on the device, kept on the host: device memory is scarce."""
    y = POOL.take(x)
    torch.mul(x, torch.sigmoid(x), out=y)
    kept = y.to("cpu", copy=True)
    POOL.release(y)
    return kept


@pytest.mark.parametrize(("workload", "shape"), list(enumerate([(8, 64), (5, 100), (3, 140)])))
def test_solution_matches_on_the_workload(workload, shape):
    for trial in range(TRIALS):
        torch.manual_seed(10 * workload + trial)
        x = torch.randn(shape, device=DEVICE)
        expected = reference(x)
        actual = silu(x)
        torch.testing.assert_close(actual.cpu(), expected)
        POOL.release(actual)
