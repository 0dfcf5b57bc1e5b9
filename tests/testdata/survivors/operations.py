# ruff: noqa: F722, F821 (named dims are not types)
"""What the built-in operations lack: the reference in float64 is the declaration."""

import torch

from gatecert import Size, Tensor, operation


@operation(
    shadow=lambda y, x: x.abs().sum(dim=0),
    reduces="B",
    contraction=True,
    tiled="B N",
)
def column_sum(x: Tensor["B N"]) -> Tensor["N"]:
    """The sum of each column."""
    return x.sum(dim=0)


@operation(shadow=lambda y, x: x.abs() + x.roll(-1, dims=1).abs(), tiled="N")
def difference(x: Tensor["B N"]) -> Tensor["B N"]:
    """Each value's right neighbour, or 0 past the end, less the value."""
    return torch.nn.functional.pad(x[:, 1:], (0, 1)) - x


@operation(count=Size("2T"), shadow=lambda y, x, slots, count: y.abs(), tiled="N")
def scatter_rows(
    x: Tensor["T N"], slots: Tensor.slots("T", count="2T"), count: int
) -> Tensor["2T N"]:
    """Row slots[t] is row t of x; slot -1 is nowhere, and rows that nothing goes to are 0."""
    y = x.new_zeros(count, x.shape[1])
    there = slots >= 0
    y[slots[there]] = x[there]
    return y
