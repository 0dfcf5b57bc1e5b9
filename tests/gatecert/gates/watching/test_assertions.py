"""What a test's source says of its assertions, and what it does not say."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gatecert.gates.watching.assertions import assertions_of

Y = R = torch.ones(3)
CHECKS = None


def asserts_generator() -> None:
    assert (abs(a - b) < 1e-6 for a, b in zip(Y, R, strict=True))


def asserts_method() -> None:
    assert (Y == R).all
    assert torch.isclose(Y, R).all


def asserts_through_a_helper() -> None:
    asserts_generator()


def asserts_plainly() -> None:
    assert (Y == R).all(), "they differ"
    assert all(abs(a - b) < 1e-6 for a, b in zip(Y, R, strict=True))
    assert (Y.shape) == (R.shape)
    assert not ()
    assert CHECKS.all  # type: ignore[attr-defined]
    assert Y.flags().all  # type: ignore[attr-defined]
    lengths = (abs(a - b) < 1e-6 for a, b in zip(Y, R, strict=True))
    assert list(lengths)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (asserts_generator, "a generator"),
        (asserts_method, "the method `all`, which is not called"),
        (asserts_through_a_helper, "a generator"),
        (asserts_plainly, ""),
        (None, ""),
        (len, ""),
    ],
)
def test_what_holds_whatever_it_is_given_is_told_with_its_place(
    function: object, says: str
) -> None:
    told = assertions_of(function, "gatecert").always_true  # type: ignore[arg-type]
    assert told.partition(" asserts ")[2] == says
    assert not says or told.startswith("test_assertions.py:")


def test_a_condition_and_its_message_in_parentheses_are_told(tmp_path: Path) -> None:
    path = tmp_path / "test_tuple.py"
    path.write_text('def test_tuple():\n    assert (1 > 2, "it is not")\n')
    names: dict[str, Any] = {}
    with warnings.catch_warnings():  # Python warns of it too
        warnings.simplefilter("ignore")
        exec(compile(path.read_text(), str(path), "exec"), names)
        told = assertions_of(names["test_tuple"], "")
    assert told.always_true == "test_tuple.py:2 asserts a tuple"


def test_code_under_test_is_no_assertion_of_the_test() -> None:
    package = __name__.partition(".")[0]

    def calls() -> None:
        asserts_generator()

    source = "def calls(helper):\n    helper()\n"
    elsewhere: dict[str, object] = {"helper": asserts_generator, "__name__": "elsewhere"}
    exec(compile(source.replace("(helper)", "()"), "/suite/test_elsewhere.py", "exec"), elsewhere)
    assert assertions_of(elsewhere["calls"], package).always_true == ""  # type: ignore[arg-type]
    assert assertions_of(elsewhere["calls"], "acme").always_true  # type: ignore[arg-type]
    assert assertions_of(calls, package).always_true


def asks_for_any() -> None:
    assert any(abs(a - b) < 1e-6 for a, b in zip(Y, R, strict=True))


def asks_for_any_approximately() -> None:
    assert any(float(Y[n]) == pytest.approx(float(R[n])) for n in range(3))


def asks_an_array_for_any() -> None:
    assert (np.abs(Y.numpy() - R.numpy()) <= 1e-6).any()


def gives_back_any() -> bool:
    return bool((np.abs(Y.numpy() - R.numpy()) <= 1e-6).any())


def asks_for_something_else() -> None:
    assert any(abs(value) < 1e-6 for value in Y.tolist())
    assert not any(abs(a - b) < 1e-6 for a, b in zip(Y, R, strict=True))
    assert not any(abs(a - b) > 1e-6 for a, b in zip(Y, R, strict=True)) or gives_back_any()
    assert (Y.numpy() < 2.0).any()
    assert any("close" in word for word in ("not close",))


@pytest.mark.parametrize(
    ("function", "is_told"),
    [
        (asks_for_any, True),
        (asks_for_any_approximately, True),
        (asks_an_array_for_any, True),
        (gives_back_any, True),
        (asks_for_something_else, False),
        (asserts_plainly, False),
    ],
)
def test_one_close_number_that_is_enough_is_told(function: object, is_told: bool) -> None:
    assert bool(assertions_of(function, "").any_of) is is_told  # type: ignore[arg-type]


def asks_for_none_beyond() -> None:
    assert not (np.abs(Y.numpy() - R.numpy()) > 1e-6).any()


def asks_numpy_for_none_beyond() -> None:
    assert not np.any(np.abs(Y.numpy() - R.numpy()) > 1e-6)


def asks_for_no_number_beyond() -> None:
    assert not any(abs(a - b) >= 1e-6 for a, b in zip(Y, R, strict=True))


def asks_for_none_otherwise() -> None:
    assert (np.abs(Y.numpy() - R.numpy()) <= 1e-6).all()
    assert not (Y.numpy() > 2.0).any()
    assert (np.abs(Y.numpy() - R.numpy()) > 1e-6).any() is np.False_


@pytest.mark.parametrize(
    ("function", "is_told"),
    [
        (asks_for_none_beyond, True),
        (asks_numpy_for_none_beyond, True),
        (asks_for_no_number_beyond, True),
        (asks_for_none_otherwise, False),
        (asks_for_any, False),
    ],
)
def test_a_bound_that_nothing_may_be_beyond_is_told(function: object, is_told: bool) -> None:
    assert bool(assertions_of(function, "").none_beyond) is is_told  # type: ignore[arg-type]
