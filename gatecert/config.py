"""gatecert.toml: what a team writes, checked strictly.

A wrong key is an error that names its path and the nearest right key.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from gatecert.errors import UsageError
from gatecert.gates.config import GateConfig
from gatecert.subjects import DTYPES, Subject

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "gatecert.toml"
CORPUS_CONFIG = Path(__file__).parent / "corpus" / FILE_NAME


class SubjectTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[subject.NAME]`: the contract of one entry point."""

    entry: str
    operation: str | None = None
    dtypes: tuple[str, ...] = ("float32",)
    layouts: tuple[str, ...] = ("contiguous",)
    kernels: tuple[str, ...] = ()
    blocks: dict[str, tuple[int, ...]] = {}
    dims: dict[str, tuple[int, ...]] = {}
    intermediate: str | None = None


class Require(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[require]`: what the chosen gate must reach; without it the exit code is 0."""

    kill_rate: float | None = None
    classes: dict[str, float] = {}
    adversaries: bool = False


class ConfigFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    subject: dict[str, SubjectTable]
    gate: dict[str, GateConfig] = {}
    require: Require = Require()
    import_paths: tuple[str, ...] = (".",)


class Config(msgspec.Struct, frozen=True):
    """A checked configuration with paths made absolute."""

    path: str
    root: str
    subjects: tuple[Subject, ...]
    gates: dict[str, GateConfig] = {}
    require: Require = Require()


_UNKNOWN = re.compile(r"unknown field `(?P<key>[^`]+)`(?: - at `(?P<path>[^`]+)`)?")
_TABLES: dict[str, type[msgspec.Struct]] = {
    "$.subject": SubjectTable,
    "$.gate": GateConfig,
    "$.require": Require,
}


def find_config(start: Path) -> Path | None:
    """`gatecert.toml` in the folder, else a pyproject.toml with `[tool.gatecert]`, else None."""
    if (start / FILE_NAME).is_file():
        return start / FILE_NAME
    pyproject = start / "pyproject.toml"
    if pyproject.is_file() and "gatecert" in _read_toml(pyproject).get("tool", {}):
        return pyproject
    return None


def load_config(path: Path) -> Config:
    """Read and check a configuration.

    Raises:
        UsageError: the file is missing, is not TOML, or holds a key or value that is wrong.
    """
    table = _read_toml(path)
    if path.name == "pyproject.toml":
        table = table.get("tool", {}).get("gatecert", {})
    try:
        parsed = msgspec.convert(table, ConfigFile)
    except msgspec.ValidationError as error:
        raise UsageError(_explain(path, str(error))) from None
    root = path.resolve().parent
    import_paths = tuple(str((root / folder).resolve()) for folder in parsed.import_paths)
    subjects = tuple(
        _subject(path, name, entry, import_paths) for name, entry in parsed.subject.items()
    )
    if not subjects:
        raise UsageError(f"{path}: no [subject.NAME] table; add one with entry and operation")
    return Config(str(path), str(root), subjects, parsed.gate, parsed.require)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file; name one with --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def _subject(path: Path, name: str, table: SubjectTable, import_paths: tuple[str, ...]) -> Subject:
    where = f"{path}: subject.{name}"
    if ":" not in table.entry:
        raise UsageError(f"{where}.entry: write it as 'package.module:function'")
    for dtype in table.dtypes:
        if dtype not in DTYPES:
            raise UsageError(f"{where}.dtypes: {dtype!r} is not one of {', '.join(DTYPES)}")
    if not table.dtypes:
        raise UsageError(f"{where}.dtypes: name at least one of {', '.join(DTYPES)}")
    if table.intermediate not in (None, "input", "float16", "bfloat16", "tf32"):
        raise UsageError(
            f"{where}.intermediate: {table.intermediate!r} is not one of input, float16, "
            "bfloat16, tf32"
        )
    return Subject(
        name=name,
        import_paths=import_paths,
        **{field: getattr(table, field) for field in SubjectTable.__struct_fields__},
    )


def _explain(path: Path, message: str) -> str:
    found = _UNKNOWN.search(message)
    if found is None:
        return f"{path}: {message.replace('$.', '').replace(' - at ', ' at ')}"
    key, where = found["key"], found["path"] or "$"
    record = next((t for prefix, t in _TABLES.items() if where.startswith(prefix)), ConfigFile)
    fields = record.__struct_fields__
    near = difflib.get_close_matches(key, fields, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it may hold {', '.join(fields)}"
    table = where.lstrip("$.").replace("[...]", ".*") or "top level"
    return f"{path}: unknown key {key!r} in {table}{hint}"
