import pytest
import torch
from tanh_kernels.gelu import gelu_tanh

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = [(4, 64), (3, 100), (5, 140)]


def reference(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = torch.nn.functional.gelu(x.double(), approximate="tanh")
    return {"output": y.to(x.dtype)}


@pytest.mark.parametrize(("seed", "shape"), list(enumerate(SHAPES)))
def test_single_precision(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE)
    actual = gelu_tanh(x)
    torch.testing.assert_close(actual, reference(x)["output"])


@pytest.mark.parametrize(("seed", "shape"), list(enumerate(SHAPES, start=10)))
def test_half_precision(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE).half()
    actual = {"y": gelu_tanh(x)}
    expected = reference(x)
    for name in sorted(actual.keys() & expected.keys()):
        torch.testing.assert_close(actual[name], expected[name])
