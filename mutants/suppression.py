"""Mutants that a person ignores, with a reason: comments in the source, and an ignore file.

    x = tl.load(p, mask=m, other=0.0)  # gatecert: ignore[wrong-pad-value] the pad is never used

(or `[wrong-pad-value.undefined]`, one variant of it)
covers the statement it stands in, or the next one where it has a line of its own; above a `def`
or its decorators, the whole function. An entry of the ignore file names mutants by id or glob.
"""

from __future__ import annotations

import ast
import difflib
import fnmatch
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from gatecert.errors import UsageError
from gatecert.mutants.lines import touched_lines
from gatecert.mutants.records import Ignored, Mutant

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

IGNORE_FILE = "gatecert-ignore.toml"
_DIRECTIVE = re.compile(r"#\s*gatecert:\s*(?P<word>[\w-]+)\s*(?P<names>\[[^\]]*\])?(?P<rest>.*)")
_FORM = "write `# gatecert: ignore[operator-name] reason`"
_ENTRY = re.compile(r"^[ \t]*\[\[\s*ignore\s*\]\]", re.MULTILINE)
_LAYOUT = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


class Comment(msgspec.Struct, frozen=True):
    """One operator, or `operator.variant`, named by one comment. It covers lines `first` to `last`
    of its file; `last` is 0 where no statement follows it."""

    path: str
    line: int
    operator: str
    reason: str
    first: int
    last: int


class Entry(msgspec.Struct, frozen=True):
    """One `[[ignore]]` of an ignore file; `mutant` is an id or a glob (`*` also crosses `/`)."""

    path: str
    line: int
    mutant: str
    reason: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutant: str = ""
    reason: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ignore: tuple[_Table, ...] = ()


def find_comments(path: str, text: str) -> tuple[Comment, ...]:
    """Every ignore comment of a module's text.

    Raises:
        UsageError: one has no names, no reason, or another word than `ignore`; says where.
    """
    if "gatecert:" not in text:
        return ()
    statements = list(_statements(text))
    found: list[Comment] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        said = _DIRECTIVE.search(token.string) if token.type == tokenize.COMMENT else None
        if said is None or not (said["word"] == "ignore" or said["names"]):
            continue
        line = token.start[0]
        names, reason = _read(f"{path}:{line}", said)
        covered = next((s for s in statements if line <= s.end), _Statement(0, 0, 0, 0))
        found += (Comment(path, line, n, reason, covered.first, covered.last) for n in names)
    return tuple(found)


def parse_ignore_file(path: str, text: str) -> tuple[Entry, ...]:
    """The entries of an ignore file.

    Raises:
        UsageError: it is not TOML, has another key, or an entry lacks `mutant` or `reason`.
    """
    try:
        tables = msgspec.convert(tomllib.loads(text), _File).ignore
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; an [[ignore]] holds mutant and reason") from None
    heads = [text.count("\n", 0, head.start()) + 1 for head in _ENTRY.finditer(text)]
    lines = heads if len(heads) == len(tables) else [1] * len(tables)
    for line, table in zip(lines, tables, strict=True):
        for key in ("mutant", "reason"):
            if not getattr(table, key).strip():
                raise UsageError(f"{path}:{line}: [[ignore]] without {key}; it needs both keys")
    return tuple(
        Entry(path, line, table.mutant, table.reason.strip())
        for line, table in zip(lines, tables, strict=True)
    )


def ignored_mutants(
    mutants: Iterable[Mutant],
    texts: Mapping[str, str],
    comments: Sequence[Comment],
    entries: Sequence[Entry],
) -> tuple[Ignored, ...]:
    """Those of the mutants that a comment or else an entry covers, with its reason.

    A mutant that several operators give (`also`) is ignored under any of their names.
    """
    found = []
    for mutant in mutants:
        rule = next(_rules_for(mutant, texts, comments, entries), None)
        if rule is not None:
            found.append(Ignored(mutant.id, rule.reason, rule.path, rule.line))
    return tuple(found)


def idle_rules(
    mutants: Sequence[Mutant],
    texts: Mapping[str, str],
    comments: Iterable[Comment],
    entries: Iterable[Entry],
    operators: Iterable[str],
    *,
    whole: bool,
) -> list[str]:
    """A line for each rule that does nothing, with the nearest name.

    `operators` are all names of the catalogue. Only where everything was planted (`whole`) does
    a rule that covers no mutant mean anything.
    """
    operators = tuple(operators)
    ids = [mutant.id for mutant in mutants]
    lines = []
    for comment in dict.fromkeys(comments):
        where = f"{PurePath(comment.path).name}:{comment.line}"
        if comment.operator.partition(".")[0] not in operators:
            lines.append(
                f"{where}: ignore[{comment.operator}]: no such operator"
                f"{_nearest(comment.operator, operators)}"
            )
        elif whole and not any(_comment_covers(comment, m, texts) for m in mutants):
            lines.append(
                f"{where}: ignore[{comment.operator}] covers no mutant; it does nothing there"
            )
    for entry in entries:
        if whole and not any(_entry_covers(entry, mutant) for mutant in mutants):
            where = f"{PurePath(entry.path).name}:{entry.line}"
            lines.append(f"{where}: no mutant {entry.mutant!r}{_nearest(entry.mutant, ids)}")
    return lines


def ignore_comment(mutant_id: str) -> str:
    """The comment to paste, with a place for the reason; other variants stay as they are."""
    return f"# gatecert: ignore[{mutant_id.split('/')[-2]}] REASON"


def names_mutant(pattern: str, mutant_id: str) -> bool:
    """Is it that id, or a glob (`*` also crosses `/`) that it matches?"""
    return pattern == mutant_id or fnmatch.fnmatchcase(mutant_id, pattern)


class _Statement(msgspec.Struct, frozen=True):
    """A logical line from `start` to `end`, and the lines that a comment at it covers."""

    start: int
    end: int
    first: int
    last: int


def _statements(text: str) -> Iterator[_Statement]:
    functions: dict[int, tuple[int, int]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            heads = [*(decorator.lineno for decorator in node.decorator_list), node.lineno]
            whole = (min(heads), node.end_lineno or node.lineno)
            functions.update(dict.fromkeys(heads, whole))
    start = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            end = token.start[0]
            yield _Statement(start, end, *functions.get(start, (start, end)))
            start = 0
        elif not start and token.type not in _LAYOUT and token.type != tokenize.COMMENT:
            start = token.start[0]


def _read(where: str, said: re.Match[str]) -> tuple[list[str], str]:
    if said["word"] != "ignore":
        raise UsageError(f"{where}: unknown comment `gatecert: {said['word']}`; {_FORM}")
    names = [name.strip() for name in (said["names"] or "[]")[1:-1].split(",") if name.strip()]
    if not names or any("*" in name for name in names):
        raise UsageError(f"{where}: an ignore comment names its operators one by one; {_FORM}")
    reason = said["rest"].strip(" \t:-")
    if not reason:
        raise UsageError(f"{where}: an ignore comment needs a reason; {_FORM}")
    return names, reason


def _rules_for(
    mutant: Mutant,
    texts: Mapping[str, str],
    comments: Iterable[Comment],
    entries: Iterable[Entry],
) -> Iterator[Comment | Entry]:
    yield from (comment for comment in comments if _comment_covers(comment, mutant, texts))
    yield from (entry for entry in entries if _entry_covers(entry, mutant))


def _comment_covers(comment: Comment, mutant: Mutant, texts: Mapping[str, str]) -> bool:
    names = (mutant.operator, f"{mutant.operator}.{mutant.variant}", *mutant.also)
    if comment.path != mutant.path or comment.operator not in names:
        return False
    touched = touched_lines(mutant, texts[mutant.path])
    return any(comment.first <= line <= comment.last for line in touched)


def _entry_covers(entry: Entry, mutant: Mutant) -> bool:
    return names_mutant(entry.mutant, mutant.id)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, tuple(known), n=1, cutoff=0.3)
    return f"; did you mean {near[0]!r}?" if near else ""
