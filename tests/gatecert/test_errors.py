"""No error reaches a reader without a word of what it is and where."""

from __future__ import annotations

import re

from gatecert.errors import described, did_you_mean


def fails(said: str) -> Exception:
    try:
        if said:
            raise ValueError(said)
        raise AssertionError
    except (AssertionError, ValueError) as error:
        return error


def test_a_message_follows_the_name_of_its_error() -> None:
    assert described(fails("no such row")) == "ValueError: no such row"


def test_an_error_without_a_message_says_where_it_was_raised() -> None:
    where = r"AssertionError without a message, in fails at test_errors\.py:\d+"
    assert re.fullmatch(where, described(fails("")))
    assert described(AssertionError()) == "AssertionError without a message"


def test_names_that_begin_alike_are_meant_before_near_ones() -> None:
    known = ("log_softmax", "softmax_one_block", "softmax_online")
    said = did_you_mean("softmax", known)
    assert said == "did you mean 'softmax_one_block' or 'softmax_online'?"
    assert did_you_mean("log_sofmax", known) == "did you mean 'log_softmax'?"
    assert did_you_mean("xyz", known).startswith("there are log_softmax, ")
