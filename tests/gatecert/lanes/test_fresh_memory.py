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
