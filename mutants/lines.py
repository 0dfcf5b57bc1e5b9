"""Which lines of its file a mutant touches."""

from __future__ import annotations

from gatecert.mutants.records import Mutant


def touched_lines(mutant: Mutant, text: str) -> frozenset[int]:
    """Lines of `text`, counted from 1: the one that the mutant is reported at, and all that its
    edits replace or insert into."""
    touched = {mutant.line}
    for edit in mutant.edits:
        first = line_at(text, edit.start)
        last = line_at(text, max(edit.start, edit.end - 1))
        touched.update(range(first, last + 1))
    return frozenset(touched)


def line_at(text: str, offset: int) -> int:
    """The line of an offset in characters. Only a newline ends a line, as for Python and git."""
    return text.count("\n", 0, offset) + 1
