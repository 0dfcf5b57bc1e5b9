"""Accepted survivors: what the file says, and when one is open again."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from gatecert.errors import UsageError
from gatecert.mutants.acceptance import (
    AcceptedEntry,
    accepted_mutants,
    code_of,
    idle_entries,
    parse_accepted,
    with_entry,
)
from gatecert.mutants.discover import find_kernels
from gatecert.mutants.plant import plant
from gatecert.mutants.records import Mutant
from gatecert.operators.registry import all_operators

PATH = Path(__file__).parents[1] / "testdata" / "kernels_softmax.py"
TEXT = PATH.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def mutant() -> Mutant:
    """Some mutant of the softmax."""
    kernels, _ = find_kernels("kernels_softmax", str(PATH), TEXT)
    return next(iter(plant("softmax", kernels[0], TEXT, all_operators())))


def entry(mutant: Mutant, code: str) -> AcceptedEntry:
    return AcceptedEntry("accepted.toml", 1, mutant.id, "it may", code, "A. Reader")


def test_what_is_written_is_read_back_with_its_place() -> None:
    text = with_entry("", "a/b", 'a "quoted" reason\nin two lines', "Zoë", "c0de")
    text = with_entry(text, "c/d", "another", "", "beef")
    first, second = parse_accepted("file", text)
    assert (first.mutant, first.reason, first.by, first.code, first.line) == (
        "a/b",
        'a "quoted" reason\nin two lines',
        "Zoë",
        "c0de",
        1,
    )
    assert (second.mutant, second.by, second.line) == ("c/d", "", 7)


def test_a_second_entry_of_a_mutant_takes_the_place_of_the_first() -> None:
    text = with_entry(with_entry("", "a/b", "old", "", "1"), "c/d", "kept", "", "2")
    text = with_entry(text, "a/b", "new", "", "3")
    assert [(e.mutant, e.reason) for e in parse_accepted("", text)] == [
        ("c/d", "kept"),
        ("a/b", "new"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[accepted", "file: not valid TOML"),
        ('[[accepted]]\nmutant = "a"\nwhy = "b"', "file: Object contains unknown field `why`"),
        ('\n[[accepted]]\nmutant = "a"\ncode = "b"', "file:2: [[accepted]] without reason"),
        ('[[accepted]]\nmutant = "a"\nreason = "b"', "file:1: [[accepted]] without code"),
    ],
)
def test_a_file_that_says_too_little_or_too_much_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        parse_accepted("file", text)


def test_comments_and_layout_leave_an_acceptance_as_it_is(mutant: Mutant) -> None:
    code = code_of(mutant, TEXT)
    assert code_of(mutant, TEXT.replace("    row =", "    # the row\n\n    row =")) == code
    changed = TEXT.replace("tl.max(x, axis=0)", "tl.max(x, axis=0) + 0.0")
    assert changed != TEXT and code_of(mutant, changed) != code
    assert code_of(mutant, TEXT + "\n\ndef other():\n    return 1\n") == code


def test_an_acceptance_holds_until_the_function_changes(mutant: Mutant) -> None:
    texts = {mutant.path: TEXT}
    (held,) = accepted_mutants([mutant], texts, [entry(mutant, code_of(mutant, TEXT))])
    assert (held.reason, held.by, held.changed) == ("it may", "A. Reader", False)
    (open_again,) = accepted_mutants([mutant], texts, [entry(mutant, "another")])
    assert open_again.changed


def test_an_entry_that_names_no_mutant_is_told(mutant: Mutant) -> None:
    gone = msgspec.structs.replace(entry(mutant, "x"), mutant="no/such", line=9)
    assert accepted_mutants([mutant], {mutant.path: TEXT}, [gone]) == ()
    (line,) = idle_entries([mutant], [gone, entry(mutant, "x")])
    assert line == "accepted.toml:9: no mutant 'no/such' is planted: the entry may go"
