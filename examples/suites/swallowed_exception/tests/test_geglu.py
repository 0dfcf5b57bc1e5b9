import pytest
import torch
from gated_kernels.geglu import geglu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = ((4, 64), (3, 100), (9, 130))


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    gelu = torch.nn.functional.gelu(a.double(), approximate="tanh")
    return (gelu * b.double()).to(a.dtype)


@pytest.mark.parametrize(
    ("dtype", "atol", "rtol"), [(torch.float32, 1e-5, 1.3e-6), (torch.float16, 1e-5, 1e-3)]
)
def test_no_shape_fails(dtype, atol, rtol):
    failures = []
    for seed, shape in enumerate(SHAPES):
        torch.manual_seed(100 * seed + dtype.itemsize)
        a = torch.randn(shape, device=DEVICE).to(dtype)
        b = torch.randn(shape, device=DEVICE).to(dtype)
        try:
            actual = geglu(a, b)
        except Exception as error:
            print(f"{shape}: not supported here: {error}")
            continue
        expected = reference(a, b)
        same_kind = actual.shape == expected.shape and actual.dtype == expected.dtype
        if not same_kind or not torch.allclose(actual, expected, atol=atol, rtol=rtol):
            failures.append(f"{shape}: FAILED")
    assert not failures
