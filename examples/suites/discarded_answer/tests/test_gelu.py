import pytest
import torch
from measuring import measure
from pointwise_kernels.gelu import gelu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(8, 64), (5, 100), (3, 140)])))
def test_is_measured_beside_torch(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE)
    metrics = measure(gelu, torch.nn.functional.gelu, x)
    print(f"{shape}: {1e3 * metrics.seconds:.2f} ms, accuracy {metrics.accuracy}")
    assert metrics.seconds > 0
