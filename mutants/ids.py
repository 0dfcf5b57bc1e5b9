"""Stable names for planted bugs."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections import Counter
from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.launcher import LauncherSyntax
from gatecert.operators.records import Edit, Site

_LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
)
_HASH_DIGITS = 6


class IdMaker:
    """Names the sites of one function, in the order in which they are planted."""

    def __init__(self, subject: str, syntax: KernelSyntax | LauncherSyntax) -> None:
        self._prefix = f"{subject}/{syntax.qualname}"
        self._text = syntax.module.text
        self._statements = tuple(statement_spans(syntax))
        self._seen: Counter[str] = Counter()

    def name(self, operator: str, site: Site) -> str:
        """`subject/function/operator[.variant]/ordinal-hash`."""
        kind = f"{operator}.{site.variant}" if site.variant else operator
        digest = hashlib.sha256(self._edited(site).encode()).hexdigest()[:_HASH_DIGITS]
        self._seen[f"{kind}/{digest}"] += 1
        return f"{self._prefix}/{kind}/{self._seen[f'{kind}/{digest}']}-{digest}"

    def _edited(self, site: Site) -> str:
        """The statements that the edits touch, without layout and comments."""
        touched = [
            span for span in self._statements if any(_touches(span, edit) for edit in site.edits)
        ]
        spans = touched or [(edit.start, edit.end) for edit in site.edits]
        return ";".join(bare(self._text[start:end]) for start, end in spans)


def statement_spans(syntax: KernelSyntax | LauncherSyntax) -> Iterator[tuple[int, int]]:
    """Spans of simple statements and of the heads of compound ones, in order."""
    module = syntax.module
    queue: list[cst.CSTNode] = [syntax.function.body]
    found = []
    while queue:
        node = queue.pop()
        if isinstance(node, cst.BaseSmallStatement):
            found.append(module.span(node))
            continue
        if isinstance(node, cst.For):
            found.append((module.span(node.target)[0], module.span(node.iter)[1]))
        elif isinstance(node, cst.If | cst.While):
            found.append(module.span(node.test))
        queue += node.children
    return iter(sorted(found))


def bare(source: str) -> str:
    """Source reduced to its tokens: no white space, comments or trailing commas."""
    try:
        tokens = [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(f"({source})").readline)
            if token.type not in _LAYOUT
        ]
    except (tokenize.TokenError, SyntaxError):
        return "".join(source.split())
    joined = "".join(tokens)[1:-1]
    for closing in ")]}":
        joined = joined.replace(f",{closing}", closing)
    return joined


def _touches(span: tuple[int, int], edit: Edit) -> bool:
    if edit.start == edit.end:
        return span[0] <= edit.start <= span[1]
    return edit.start < span[1] and span[0] < edit.end
