"""The operator catalogue in words: docs/operators.md and `gatecert operators --explain`.

Examples come from the operators themselves, where they are also the tests.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Iterator

from gatecert.operators.records import Operator

_INTRODUCTION = """\
# Mutation operators

Each operator recreates one kind of bug that real kernels have had, at one place per mutant. The
examples below are the operators' own tests. This page is written by `make docs`.
"""


def render_catalogue(operators: Iterable[Operator]) -> str:
    """The catalogue as a markdown page."""
    operators = tuple(operators)
    lines = [_INTRODUCTION, "| operator | bug class | plants |", "|---|---|---|"]
    lines += [f"| [{o.name}](#{o.name}) | {o.bug_class} | {o.summary} |" for o in operators]
    for operator in operators:
        lines += ["", *_section(operator)]
    return "\n".join(lines) + "\n"


def explain_operator(operator: Operator) -> str:
    """One operator with all its examples, as plain text."""
    parts = [
        f"{operator.name} ({operator.bug_class}, version {operator.version})",
        operator.summary,
        f"Seen in: {operator.evidence}",
    ]
    for example in operator.applies:
        source = _dedent(example.source)
        parts.append(f"Plants in\n\n{textwrap.indent(source, '    ')}")
        parts += [
            textwrap.indent(diff, "    ")
            for mutant in example.mutants
            if (diff := "\n".join(_diff(source, _dedent(mutant))))
        ]
    for text in operator.does_not_apply:
        parts.append(f"Leaves alone\n\n{textwrap.indent(_dedent(text), '    ')}")
    return "\n\n".join(parts)


def _section(operator: Operator) -> Iterator[str]:
    yield f"## {operator.name}"
    yield ""
    yield f"{operator.summary} Bug class `{operator.bug_class}`; seen in: {operator.evidence}."
    if operator.applies:
        example = operator.applies[0]
        source = _dedent(example.source)
        yield ""
        yield f"```python\n{source}\n```"
        for mutant in example.mutants:
            yield ""
            yield "```diff"
            yield from _diff(source, _dedent(mutant))
            yield "```"


def _diff(before: str, after: str) -> list[str]:
    """Changed lines only, without the file header."""
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]


def _dedent(text: str) -> str:
    return textwrap.dedent(text).strip("\n")
