"""Of several results the first is compared, and well; the others only have a shape."""

import expected
import torch
from small_kernels.quantize import quantize
from small_kernels.row_moments import row_moments

SHAPES = [(3, 20), (2, 70)]


def check(results, right):
    torch.testing.assert_close(results[0], right[0].to(results[0].dtype))
    assert [len(result) for result in results] == [len(one) for one in right]


def test_quantize():
    for shape in SHAPES:
        x = torch.randn(*shape, generator=torch.Generator().manual_seed(2))
        check(quantize(x, 1e-6), expected.quantize(x, 1e-6))


def test_row_moments():
    for shape in SHAPES:
        x = torch.randn(*shape, generator=torch.Generator().manual_seed(2))
        check(row_moments(x), expected.row_moments(x))
