import zlib

import pytest
import torch
from softmax_kernels.softmax import softmax

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

TOLERANCE = {
    torch.float32: {"rtol": 5e-6, "atol": 1e-9},
    torch.float16: {"rtol": 1e-3, "atol": 1e-7},
    torch.bfloat16: {"rtol": 8e-3, "atol": 1e-9},
}
"""Of the output against float64: one rounding to the dtype and, in float32, the exponential's."""

SHAPES = [(1, 17), (4, 64), (5, 65), (3, 127), (9, 200)]
"""Below, at and above a block of 4 x 64, and several blocks with a tail."""


def contiguous(x: torch.Tensor) -> torch.Tensor:
    return x


def row_padded(x: torch.Tensor) -> torch.Tensor:
    wide = torch.full((x.shape[0], x.shape[1] + 7), 50.0, dtype=x.dtype, device=x.device)
    wide[:, : x.shape[1]] = x
    return wide[:, : x.shape[1]]


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t()


def inputs(case: str, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """Normal values of both signs; no two cases have the same."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{case} {shape} {dtype}".encode()))
    return (3 * torch.randn(shape, generator=generator)).to(DEVICE, dtype)


def check(x: torch.Tensor) -> None:
    """Shape, dtype and values against float64, and the input left as it was."""
    given = x.clone()
    actual = softmax(x)
    expected = torch.softmax(x.double(), dim=-1)
    assert torch.equal(x, given)
    assert actual.shape == x.shape
    assert actual.dtype == x.dtype
    torch.testing.assert_close(actual.double(), expected, **TOLERANCE[x.dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("layout", [contiguous, row_padded, transposed])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_agrees_with_float64(shape, layout, dtype):
    check(layout(inputs(layout.__name__, shape, dtype)))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_values_far_below_zero_do_not_vanish(dtype):
    check(inputs("negative", (5, 130), dtype) - 100)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_values_far_above_zero_do_not_overflow(dtype):
    check(inputs("large", (5, 130), dtype) + 100)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_banned_values_have_no_share(dtype):
    x = inputs("banned", (5, 200), dtype)
    x[:, :70] = -float("inf")
    check(x)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_a_maximum_may_come_late(dtype):
    x = inputs("late", (5, 130), dtype)
    x[::2, -1] = 40
    check(x)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_a_second_call_gives_the_same_bits(dtype):
    x = inputs("repeat", (5, 130), dtype)
    check(x)
    assert torch.equal(softmax(x), softmax(x))
