from __future__ import annotations

import pytest

from gatecert.errors import UsageError
from gatecert.oracle.dims import names_in, size_of_dim, solve, substitute, written_out

SIZES = {"B": 3, "G": 2, "H": 5, "K": 300, "S": 7}


@pytest.mark.parametrize(
    ("dim", "size"),
    [
        ("S", 7),
        ("4", 4),
        ("2S", 14),
        ("2*S", 14),
        ("G*H", 10),
        ("2G*H", 20),
        ("S+1", 8),
        ("G*H+S+1", 18),
        ("(S+1)*G", 16),
        ("cdiv(K,128)", 3),
        ("B*cdiv(S+1,4)", 6),
    ],
)
def test_the_size_of_a_dim_follows_from_those_of_its_names(dim: str, size: int) -> None:
    assert size_of_dim(dim, SIZES) == size


def test_names_come_in_order_and_once() -> None:
    assert names_in("G*H+cdiv(K,G)+1") == ("G", "H", "K")


@pytest.mark.parametrize(
    ("dim", "name", "actual", "found"),
    [
        ("S+1", "S", 8, 7),
        ("2*G*H+3", "H", 23, 5),
        ("2S", "S", 7, None),
        ("S+1", "S", 0, None),
        ("cdiv(K,128)", "K", 3, None),
    ],
)
def test_a_size_is_solved_for_only_where_it_is_told(
    dim: str, name: str, actual: int, found: int | None
) -> None:
    assert solve(dim, name, actual, {"G": 2}) == found


def test_derived_dims_are_written_out_in_drawn_ones() -> None:
    rules = written_out({"Hq": "G*Hkv", "Cap": "P*Z", "Pages": "B*P+1", "All": "Pages*Z"}, "here")
    assert rules == {"Hq": "G*Hkv", "Cap": "P*Z", "Pages": "B*P+1", "All": "(B*P+1)*Z"}
    assert substitute("2Hq", rules) == "2*(G*Hkv)"
    assert substitute("T", rules) == "T"


@pytest.mark.parametrize(
    ("derived", "message"),
    [
        ({"A": "A+1"}, r"dim A is derived from itself \(A = A\+1\); one of them must be drawn"),
        (
            {"A": "B+1", "B": "2*C", "C": "A"},
            r"dim A is derived from itself \(A = B\+1, B = 2\*C, C = A\)",
        ),
        ({"A": "B-1"}, "derived dim A: 'B-1' is no dim"),
        ({"2A": "B"}, "a derived dim needs a name, not '2A'"),
    ],
)
def test_a_circle_or_a_rule_that_is_none_is_refused(derived: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=f"here: {message}|here: .*{message}"):
        written_out(derived, "here")
