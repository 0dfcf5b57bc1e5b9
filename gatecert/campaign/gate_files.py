"""The files that a gate's table names, as far as its text tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gatecert.gates.config import GateConfig
from gatecert.gates.suite.python_path import python_path
from gatecert.sandbox.copy_plan import repository_of
from gatecert.store.keys import project_files
from gatecert.subjects import Subject

_SETTINGS = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)


def gate_files(table: GateConfig, root: Path) -> tuple[Path, ...]:
    """Test files, scripts and modules that the table names, with what pytest reads beside them.

    `root` is the folder of the configuration. A pytest gate that names no path has the test
    files of its folder.
    """
    folder = (root / table.rootdir).resolve()
    named = [
        path
        for path in _named(table, folder)
        if any(path.resolve().is_relative_to(top) for top in (root.resolve(), folder))
    ]
    if table.kind == "pytest":
        tests = [path for path in named if path.exists()] or [folder]
        named = [*tests, *_beside(tests, folder)]
    found = (file for path in named for file in _below(path))
    return tuple(sorted({path.resolve() for path in found}))


def gate_roots(
    root: Path, tables: Iterable[GateConfig], subjects: Iterable[Subject]
) -> tuple[Path, ...]:
    """Files and folders that gates may read: the configuration's folder, what they read beside
    it, every file that a table names, and what pytest reads up to the repository's top."""
    tables = tuple(tables)
    named = {file for table in tables for file in gate_files(table, root)}
    suites = [(root / table.rootdir).resolve() for table in tables if table.kind == "pytest"]
    above = {path for folder in suites for path in _above(folder)}
    folders = {path for file in above | named for path in python_path(file) if path.is_dir()}
    apart = {path for path in folders if path not in root.resolve().parents}
    return (root, *read_outside(root, tables, subjects), *sorted(named | above | apart))


def _above(folder: Path) -> Iterator[Path]:
    """conftest.py files and pytest's settings from the folder up to its repository's top."""
    top = Path(repository_of(str(folder)))
    for above in (folder, *folder.parents):
        yield from (
            above / name for name in ("conftest.py", *_SETTINGS) if (above / name).is_file()
        )
        if above == top:
            return


def read_outside(
    root: Path, tables: Iterable[GateConfig], subjects: Iterable[Subject]
) -> tuple[Path, ...]:
    """What gates read beside the folder of the configuration: files and folders that their tables
    name, and the folders that subjects are imported from."""
    named = {
        path.resolve()
        for table in tables
        for path in (
            (root / table.rootdir),
            *_named(table, (root / table.rootdir).resolve()),
        )
    }
    imported = {Path(folder).resolve() for subject in subjects for folder in subject.import_paths}
    top = root.resolve()
    beside = {path for path in named | imported if path.exists() and not path.is_relative_to(top)}
    return tuple(sorted(p for p in beside if not any(q in p.parents for q in beside)))


def _named(table: GateConfig, folder: Path) -> Iterator[Path]:
    """Words of the table that are a path, a test's id or `module:function`."""
    for word in (*table.args, *table.command, table.callable):
        name, colons, _ = word.partition(":")
        if name and (folder / name).exists() and (folder / name).resolve() != folder:
            yield folder / name
        elif colons and (folder / f"{name.replace('.', '/')}.py").is_file():
            yield folder / f"{name.replace('.', '/')}.py"


def _beside(tests: Iterable[Path], folder: Path) -> Iterator[Path]:
    """conftest.py files from the gate's folder down to the tests, and pytest's settings."""
    for test in tests:
        for above in (test, *test.parents):
            if above == folder or folder in above.parents:
                yield above / "conftest.py"
    yield from (folder / name for name in _SETTINGS)


def _below(path: Path) -> Iterator[Path]:
    """The file, or the test files of the folder."""
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from (file for file in project_files(path) if is_test(file))


def is_test(file: Path) -> bool:
    """Does pytest, by its usual settings, read the file by itself?"""
    tests = file.name.startswith("test_") or file.stem.endswith("_test")
    return file.suffix == ".py" and (tests or file.name == "conftest.py")
