"""Survivors that a person has looked at and accepts, in a file for people to review.

    [[accepted]]
    mutant = "softmax/softmax_kernel/wrong-constant.x1.01/1-355e56"
    reason = "no caller scales"
    by     = "A. Reader, 2025-01-31"
    code   = "1f0c5a..."

`code` is a hash of the mutated function as it was: once that changes, the survivor is open again.
Unlike an ignored mutant, an accepted one is run and counts.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gatecert.errors import UsageError
from gatecert.mutants.records import Accepted, Mutant

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ACCEPTED_FILE = "gatecert-accepted.toml"
_HEAD = re.compile(r"^[ \t]*\[\[\s*accepted\s*\]\]", re.MULTILINE)
_KEYS = ("mutant", "reason", "code")


class AcceptedEntry(msgspec.Struct, frozen=True):
    """One `[[accepted]]`, and where it stands."""

    path: str
    line: int
    mutant: str
    reason: str
    code: str
    by: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutant: str = ""
    reason: str = ""
    by: str = ""
    code: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    accepted: tuple[_Table, ...] = ()


def parse_accepted(path: str, text: str) -> tuple[AcceptedEntry, ...]:
    """The entries of the file.

    Raises:
        UsageError: it is not TOML, has another key, or an entry lacks one; says where.
    """
    try:
        tables = msgspec.convert(tomllib.loads(text), _File).accepted
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; `gatecert accept` writes entries") from None
    heads = [text.count("\n", 0, head.start()) + 1 for head in _HEAD.finditer(text)]
    lines = heads if len(heads) == len(tables) else [1] * len(tables)
    for line, table in zip(lines, tables, strict=True):
        for key in _KEYS:
            if not getattr(table, key).strip():
                raise UsageError(f"{path}:{line}: [[accepted]] without {key}; it needs that key")
    return tuple(
        AcceptedEntry(path, line, t.mutant, t.reason.strip(), t.code, t.by.strip())
        for line, t in zip(lines, tables, strict=True)
    )


def with_entry(text: str, mutant: str, reason: str, by: str, code: str) -> str:
    """The file with an entry for the mutant, in the place of the one it may have had."""
    starts = [head.start() for head in _HEAD.finditer(text)]
    parts = [text[a:b] for a, b in zip([0, *starts], [*starts, len(text)], strict=True)]
    kept = [part for part in parts if f"mutant = {json.dumps(mutant)}\n" not in part]
    before = "".join(kept).rstrip("\n")
    keys = {"mutant": mutant, "reason": reason, **({"by": by} if by else {}), "code": code}
    entry = "".join(f"{key} = {_quoted(value)}\n" for key, value in keys.items())
    return f"{before}\n\n[[accepted]]\n{entry}".lstrip("\n")


def code_of(mutant: Mutant, text: str) -> str:
    """A hash of the function that it mutates, without comments, layout and docstring; of its whole
    module where that function is not found."""
    tree = ast.parse(text)
    name = mutant.unit.rpartition(":")[2].rpartition(".")[2]
    found: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            found = node
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(found).encode()).hexdigest()[:16]


def accepted_mutants(
    mutants: Iterable[Mutant], texts: Mapping[str, str], entries: Sequence[AcceptedEntry]
) -> tuple[Accepted, ...]:
    """Those of the mutants that an entry names, and whether their code is what was accepted."""
    by_mutant = {entry.mutant: entry for entry in entries}
    return tuple(
        Accepted(
            mutant.id,
            entry.reason,
            entry.by,
            changed=code_of(mutant, texts[mutant.path]) != entry.code,
        )
        for mutant in mutants
        if (entry := by_mutant.get(mutant.id)) is not None
    )


def idle_entries(mutants: Iterable[Mutant], entries: Sequence[AcceptedEntry]) -> list[str]:
    """A line for each entry that names no mutant."""
    known = {mutant.id for mutant in mutants}
    return [
        f"{entry.path}:{entry.line}: no mutant {entry.mutant!r} is planted: the entry may go"
        for entry in entries
        if entry.mutant not in known
    ]


def _quoted(value: str) -> str:
    # What JSON escapes in a string TOML reads alike, all on one line.
    return json.dumps(value, ensure_ascii=False)
