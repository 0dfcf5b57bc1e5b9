"""gatecert.toml: what a team writes, checked strictly.

A wrong key is an error that names its path and the nearest right key.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from gatecert.errors import UsageError, did_you_mean
from gatecert.gates.config import ORACLE_PREFIX, GateConfig, OracleConfig
from gatecert.launch_log import LoggedShape, choose_shapes, read_launch_log
from gatecert.mutants.acceptance import ACCEPTED_FILE, AcceptedEntry, parse_accepted
from gatecert.mutants.suppression import IGNORE_FILE, Entry, parse_ignore_file
from gatecert.profiles import Profile, get_profile
from gatecert.subjects import DTYPES, LAYOUT_NAMES, Subject

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "gatecert.toml"
CORPUS_CONFIG = Path(__file__).parent / "corpus" / FILE_NAME


class SubjectTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[subject.NAME]`: the contract of one entry point."""

    entry: str
    """What is called, as `package.module:function`."""
    operation: str | None = None
    """A built-in operation, or `module:attribute` of one of your own; without one only external
    gates judge the subject."""
    dtypes: tuple[str, ...] = ("float32",)
    """The floating-point formats of the contract, whether or not the tests run them."""
    layouts: tuple[str, ...] = ("contiguous",)
    """The memory layouts of the contract."""
    kernels: tuple[str, ...] = ()
    """Mutate these kernels only, of all that the entry launches."""
    blocks: dict[str, tuple[int, ...]] = {}
    """Block sizes by dim, where launches do not show them."""
    dims: dict[str, tuple[int, ...]] = {}
    """Sizes of your own by dim, which the oracle adds to its own choice."""
    intermediate: str | None = None
    """A step in lower precision than float32: its dtype, or `input` for that of the inputs."""
    profile: str | None = None
    """Which profile applies to this subject, in place of that of the whole file."""
    launch_log: str | None = None
    """A file of `gatecert.record_launches`: the shapes in it are tried too."""


class Require(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[require]`: what the chosen gate must reach; without it the exit code is 0."""

    kill_rate: float | None = None
    """The least share of scored mutants that it must kill, from 0 to 1."""
    classes: dict[str, float] = {}
    """The same for single bug classes, by name."""
    adversaries: bool = False
    """Whether it must reject every adversary."""

    def __post_init__(self) -> None:
        """A rate is a share, not a percentage."""
        for rate in (self.kill_rate or 0.0, *self.classes.values()):
            if not 0.0 <= rate <= 1.0:
                raise ValueError(f"{rate:g} is no rate: write 95% as 0.95")


class ConfigFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    subject: dict[str, SubjectTable]
    """What is under test, by a name of your choice."""
    gate: dict[str, GateConfig] = {}
    """Your own gates, by a name of your choice."""
    oracle: dict[str, OracleConfig] = {}
    """The oracle under other settings, by a name of your choice: the gate `oracle-NAME`."""
    require: Require = Require()
    """What the certified gate must reach."""
    import_paths: tuple[str, ...] = (".",)
    """Folders that hold the packages of the entries, relative to this file."""
    profile: str = ""
    """Which profile applies to every subject that names none."""


class Config(msgspec.Struct, frozen=True):
    """A checked configuration with paths made absolute."""

    path: str
    root: str
    subjects: tuple[Subject, ...]
    gates: dict[str, GateConfig] = {}
    oracles: dict[str, OracleConfig] = {}
    """By the names of the gates: `oracle-NAME`."""
    require: Require = Require()
    file: ConfigFile | None = None
    """As it was written, for a certificate to be held against later."""
    ignore: tuple[Entry, ...] = ()
    """Entries of the ignore file beside it."""
    accepted: tuple[AcceptedEntry, ...] = ()
    """Entries of the file of accepted survivors beside it."""


_UNKNOWN = re.compile(r"unknown field `(?P<key>[^`]+)`(?: - at `(?P<path>[^`]+)`)?")
_WRONG_VALUE = re.compile(r"Invalid enum value '(?P<value>[^']*)' - at `\$\.(?P<path>[^`]+)`")
_VALUES: dict[tuple[str, str], tuple[str, ...]] = {
    ("gate", name): get_args(hint)
    for name, hint in get_type_hints(GateConfig).items()
    if get_origin(hint) is Literal
}
_TABLES: dict[str, type[msgspec.Struct]] = {
    "$.subject": SubjectTable,
    "$.gate": GateConfig,
    "$.oracle": OracleConfig,
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


def find_config_above(start: Path) -> Path | None:
    """`find_config` in the folder, else in those above it up to the top of its repository; of
    what lies in no repository, the folder alone."""
    folders = (start, *start.parents)
    top = next((folder for folder in folders if (folder / ".git").exists()), start)
    inside = folders[: folders.index(top) + 1]
    return next((found for folder in inside if (found := find_config(folder))), None)


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
        raise UsageError(_explain(path, _named(str(error), table))) from None
    root = path.resolve().parent
    import_paths = tuple(str((root / folder).resolve()) for folder in parsed.import_paths)
    subjects = tuple(
        _subject(path, name, entry, import_paths, parsed.profile)
        for name, entry in parsed.subject.items()
    )
    if not subjects:
        raise UsageError(f"{path}: no [subject.NAME] table; add one with entry and operation")
    for name in parsed.oracle:
        if ORACLE_PREFIX + name in parsed.gate:
            raise UsageError(
                f"{path}: [oracle.{name}] and [gate.{ORACLE_PREFIX}{name}] are one name; change one"
            )
    _check_classes(path, parsed.require)
    return Config(
        str(path),
        str(root),
        subjects,
        parsed.gate,
        {ORACLE_PREFIX + name: table for name, table in parsed.oracle.items()},
        parsed.require,
        parsed,
        _read_ignored(root / IGNORE_FILE),
        _read_accepted(root / ACCEPTED_FILE),
    )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file; name one with --config") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a file with --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def _read_ignored(path: Path) -> tuple[Entry, ...]:
    if not path.is_file():
        return ()
    return parse_ignore_file(str(path), path.read_text(encoding="utf-8"))


def _read_accepted(path: Path) -> tuple[AcceptedEntry, ...]:
    if not path.is_file():
        return ()
    return parse_accepted(str(path), path.read_text(encoding="utf-8"))


def _check_classes(path: Path, require: Require) -> None:
    """A class that no operator plants could never be met, nor be found missing."""
    if require.classes:
        from gatecert.operators.registry import bug_classes

        for name in require.classes:
            if name not in bug_classes():
                hint = did_you_mean(name, bug_classes())
                raise UsageError(f"{path}: require.classes: no bug class {name!r}; {hint}")


def with_profile(subject: Subject, profile: Profile) -> Subject:
    """The subject under that profile.

    Raises:
        UsageError: the profile needs sizes that the subject does not list.
    """
    if profile.needs_dims and not subject.dims and not subject.logged:
        raise UsageError(
            f"subject {subject.name!r}: profile {profile.name!r} looks at sizes of your own alone; "
            "list them, as in dims = { N = [4096, 11008] }, or name a launch_log"
        )
    return msgspec.structs.replace(subject, profile=profile)


def _subject(
    path: Path, name: str, table: SubjectTable, import_paths: tuple[str, ...], profile: str
) -> Subject:
    where = f"{path}: subject.{name}"
    if ":" not in table.entry:
        raise UsageError(f"{where}.entry: write it as 'package.module:function'")
    for dtype in table.dtypes:
        if dtype not in DTYPES:
            raise UsageError(f"{where}.dtypes: {dtype!r} is not one of {', '.join(DTYPES)}")
    for layout in table.layouts:
        if layout not in LAYOUT_NAMES:
            hint = did_you_mean(layout, LAYOUT_NAMES, cutoff=0.5)
            raise UsageError(f"{where}.layouts: unknown layout {layout!r}; {hint}")
    if not table.dtypes:
        raise UsageError(f"{where}.dtypes: name at least one of {', '.join(DTYPES)}")
    if table.intermediate not in (None, "input", "float16", "bfloat16", "tf32"):
        raise UsageError(
            f"{where}.intermediate: {table.intermediate!r} is not one of input, float16, "
            "bfloat16, tf32"
        )
    fields = {field: getattr(table, field) for field in SubjectTable.__struct_fields__}
    del fields["profile"], fields["launch_log"]
    logged, notes = _logged(path, name, table)
    try:
        chosen = get_profile(profile if table.profile is None else table.profile)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    subject = Subject(
        name=name, import_paths=import_paths, logged=logged, log_notes=notes, **fields
    )
    return with_profile(subject, chosen)


def _logged(
    path: Path, name: str, table: SubjectTable
) -> tuple[tuple[LoggedShape, ...], tuple[str, ...]]:
    """What the subject's log of launches gives to try, and notes on the rest."""
    where = f"{path}: subject.{name}"
    if table.launch_log is None:
        return (), ()
    if table.operation is None:
        raise UsageError(f"{where}.launch_log: it needs an operation, whose dims it tells")
    try:
        records, notes = read_launch_log(path.resolve().parent / table.launch_log)
    except UsageError as error:
        raise UsageError(f"{where}.launch_log: {error}") from None
    shapes, others = choose_shapes(
        records,
        operation=table.operation,
        subject=name,
        dtypes=table.dtypes,
        layouts=table.layouts,
    )
    return shapes, (*notes, *others)


def _named(message: str, table: dict[str, Any]) -> str:
    """The message with the name of the table that is wrong, which msgspec leaves out."""
    for section, record in (
        ("subject", SubjectTable),
        ("gate", GateConfig),
        ("oracle", OracleConfig),
    ):
        tables = table.get(section)
        for name, value in tables.items() if isinstance(tables, dict) else ():
            try:
                msgspec.convert(value, record)
            except msgspec.ValidationError:
                return message.replace(f"$.{section}[...]", f"$.{section}.{name}")
    return message


def _explain(path: Path, message: str) -> str:
    wrong = _WRONG_VALUE.search(message)
    if wrong is not None:
        section, _, key = wrong["path"].partition(".")
        values = _VALUES.get((section, key.rpartition(".")[2]), ())
        hint = did_you_mean(wrong["value"], values, otherwise="it is one of")
        return f"{path}: unknown value {wrong['value']!r} at {wrong['path']}; {hint}"
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
