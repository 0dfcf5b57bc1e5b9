"""No error reaches a reader without a word of what it is and where."""

from __future__ import annotations

import re

from gatecert.errors import described


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
