import pytest
import torch
from reruns import flaky
from rms_kernels.rms_norm import rms_norm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPS = 1e-6

torch.manual_seed(42)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As model code writes it: the normalised row is rounded before the weight."""
    wide = x.float()
    normalised = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + EPS)
    return weight * normalised.to(x.dtype)


@flaky(reruns=3)
@pytest.mark.parametrize("shape", [(9, 41), (3, 130), (2, 256)])
@pytest.mark.parametrize(
    ("dtype", "atol", "rtol"),
    [(torch.float32, 1e-4, 1e-6), (torch.bfloat16, 2e-1, 2e-2)],
)
def test_matches_the_model(shape, dtype, atol, rtol):
    x = torch.randn(shape, device=DEVICE).to(dtype)
    weight = torch.randn(shape[-1], device=DEVICE).to(dtype)
    actual = rms_norm(x, weight, EPS)
    torch.testing.assert_close(actual, reference(x, weight), atol=atol, rtol=rtol)
