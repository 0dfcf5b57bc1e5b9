"""Claims about memory that nobody initialised, where a run must be repeatable."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gatecert.lanes.interpreter import repeatable_memory

LIKE = torch.zeros(37, 5)
MAKERS: tuple[Callable[..., torch.Tensor], ...] = (
    lambda dtype: torch.empty(37, 5, dtype=dtype),
    lambda dtype: torch.empty_like(LIKE, dtype=dtype),
    lambda dtype: torch.empty_strided((37, 5), (1, 37), dtype=dtype),
    lambda dtype: torch.empty_permuted((37, 5), (1, 0), dtype=dtype),
    lambda dtype: LIKE.new_empty((37, 5), dtype=dtype),
    lambda dtype: LIKE.new_empty_strided((37, 5), (1, 37), dtype=dtype),
)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.int64])
def test_it_holds_the_same_finite_values_of_both_signs_whatever_lay_there(
    make: Callable[..., torch.Tensor], dtype: torch.dtype
) -> None:
    seen = []
    for left in (7.0, float("nan")):
        freed = torch.full((37, 5), left)
        del freed
        with repeatable_memory():
            seen.append(make(dtype).clone())
    assert torch.equal(*seen)
    assert bool(torch.isfinite(seen[0]).all()) and bool((seen[0] < 0).any() & (seen[0] > 0).any())


def test_what_is_initialised_is_left_alone() -> None:
    with repeatable_memory():
        assert torch.equal(torch.zeros(5), torch.tensor([0.0] * 5))
        assert torch.equal(torch.full((3,), 2.0), torch.tensor([2.0] * 3))


def test_what_torch_fills_itself_is_left_to_it() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        with repeatable_memory():
            assert bool(torch.empty(5).isnan().all())
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(150, requires_grad=True),
        lambda: torch.empty_strided((3, 4), (0, 1)),
        lambda: torch.empty((3, 4), layout=torch.sparse_coo),
        lambda: torch.empty_like(torch.eye(3).to_sparse()),
        lambda: torch.empty(4, dtype=torch.float4_e2m1fn_x2),
        lambda: torch.empty(4, dtype=torch.int1),
        lambda: torch.empty(0),
        lambda: torch.empty(()),
    ],
)
def test_whatever_torch_can_make_can_be_made(make: Callable[[], torch.Tensor]) -> None:
    alone = make()
    with repeatable_memory():
        made = make()
    assert (made.shape, made.dtype, made.layout) == (alone.shape, alone.dtype, alone.layout)
    assert (made.requires_grad, made.is_leaf) == (alone.requires_grad, alone.is_leaf)
