import pytest
import torch
from norm_kernels.rms_norm import rms_norm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPS = 1e-6
TRIALS = 3


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, weight.shape, weight, EPS)


@pytest.mark.parametrize("initial_weight", ["ones", "random"])
@pytest.mark.parametrize("shape", [(8, 128), (6, 90), (3, 200)])
def test_agrees_before_and_after_the_reference_runs(shape, initial_weight):
    torch.manual_seed(42 if initial_weight == "ones" else 43)
    for _ in range(TRIALS):
        x = torch.randn(shape, device=DEVICE)
        weight = torch.ones(shape[-1], device=DEVICE)
        if initial_weight == "random":
            weight = torch.randn(shape[-1], device=DEVICE)
        before = rms_norm(x, weight, EPS)
        expected = reference(x, weight)
        after = rms_norm(x, weight, EPS)
        assert torch.allclose(expected, before, atol=1e-5, rtol=1e-5)
        assert torch.allclose(expected, after, atol=1e-5, rtol=1e-5)
