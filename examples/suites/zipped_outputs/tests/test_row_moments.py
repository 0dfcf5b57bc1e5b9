import torch
from moment_kernels.row_moments import row_moments
from results import assert_same_results

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = ((4, 64), (5, 20), (2, 150))


def reference(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    wide = x.double()
    moments = wide.sum(dim=1), wide.mean(dim=1), wide.var(dim=1, unbiased=False)
    return tuple(moment.float() for moment in moments)


def test_moments_of_every_case():
    generator = torch.Generator().manual_seed(42)
    inputs = {
        f"test_case_{number}": torch.randn(shape, generator=generator).to(DEVICE)
        for number, shape in enumerate(SHAPES, start=1)
    }
    actual = {name: row_moments(x) for name, x in inputs.items()}
    expected = {name: reference(x) for name, x in inputs.items()}
    assert_same_results(expected, actual)
