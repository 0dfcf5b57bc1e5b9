# ruff: noqa: F722, F821, UP037 (named dims are not types)
"""Arguments of a call are bound to a schema by shapes and strides alone."""

from __future__ import annotations

from typing import Any

import pytest

from gatecert.oracle.binding import Misfit, SeenTensor, bind
from gatecert.oracle.case import Case
from gatecert.oracle.minimise import Budget, Search, Space, shrink_structure
from gatecert.oracle.schema import Operation, Size, Tensor, operation


def dense(*shape: int, dtype: str = "float16") -> SeenTensor:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return SeenTensor(shape, tuple(strides), dtype)


@operation(derived={"Hq": "G*H"}, count=Size("S"))
def grouped(
    q: Tensor["B Hq S"],
    k: Tensor["B H S+1"],
    bias: Tensor["Hq"] | None,
    out: Tensor.out("B Hq S"),
    count: int,
) -> Tensor["B Hq S"]:
    return q


ARGUMENTS: dict[str, Any] = {
    "q": dense(2, 12, 5),
    "k": dense(2, 3, 6),
    "bias": dense(12),
    "out": dense(2, 12, 5),
    "count": 5,
}


def test_products_and_sums_are_solved_for_the_one_name_that_is_left() -> None:
    bound = bind(grouped, ARGUMENTS)
    assert bound.dims == {"B": 2, "G": 4, "H": 3, "S": 5}
    assert bound.dtype == "float16"
    assert bound.absent == ()


def test_an_optional_tensor_may_be_left_out() -> None:
    assert bind(grouped, {**ARGUMENTS, "bias": None}).absent == ("bias",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"k": dense(2, 3, 5)},
            "argument k: expected shape [B, H, S+1] = [2, 3, 6], has (2, 3, 5)",
        ),
        ({"k": dense(2, 5, 6)}, "argument q: expected shape [B, G*H, S] = [2, G*H, 5], has"),
        ({"bias": dense(8)}, "argument bias: expected shape [G*H] = [12], has (8,)"),
        ({"count": 7}, "argument count: expected S = 5, is 7"),
        ({"q": None}, "argument q: expected a tensor [B, G*H, S], not given"),
        ({"mask": 1}, "argument mask: grouped has none of that name"),
    ],
)
def test_what_does_not_fit_is_named_with_what_it_must_be(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Misfit) as caught:
        bind(grouped, {**ARGUMENTS, **change})
    assert str(caught.value).startswith(said)


def test_an_optional_tensor_that_does_not_matter_is_left_out_of_the_simplest_case() -> None:
    made: Operation = grouped
    start = Case("grouped", (("B", 2), ("G", 2), ("H", 2), ("S", 3)), "float32")
    search = Search(start, lambda case: True, Budget(200))
    shrink_structure(search, Space(made, ("float32",), {}))
    assert search.best.id == "grouped/float32/B=1,G=1,H=1,S=1/contiguous/normal~bias/seed=0"
