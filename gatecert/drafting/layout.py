"""Where a repository's packages lie: what is put on `sys.path` to import a file, by what name."""

from __future__ import annotations

import configparser
import contextlib
import sys
from collections.abc import Collection, Iterator
from pathlib import Path, PurePath
from typing import Any

from gatecert.locating import module_of, package_root

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def is_test(path: PurePath) -> bool:
    """Whether pytest would collect it, by the usual names, or it lies below a folder of tests."""
    usual = path.name.startswith("test_") or path.stem.endswith("_test")
    return usual or "tests" in path.parts[:-1] or "test" in path.parts[:-1]


def declared_roots(root: Path) -> tuple[Path, ...]:
    """Folders that the project's own files name as holding packages, deepest first; `src` too."""
    names = ["src", *_of_pyproject(root / "pyproject.toml")]
    for name in ("pytest.ini", "tox.ini", "setup.cfg"):
        names += _of_ini(root / name)
    folders = {(root / name).resolve() for name in names}
    found = (f for f in folders if f.is_dir() and not (f / "__init__.py").is_file())
    return tuple(sorted(found, key=lambda folder: (-len(folder.parts), folder)))


def place(
    path: Path, root: Path, declared: Collection[Path], imported: Collection[str]
) -> tuple[Path, str]:
    """The folder that must be on `sys.path`, and the module's name beneath it.

    `__init__.py` files decide where there are any, then the folders that the project declares,
    then what the project's own code imports (`imported` holds dotted names); a test module
    without a package is imported from its own folder, as pytest does.
    """
    path = path.resolve()
    if (path.parent / "__init__.py").is_file():
        return package_root(path), module_of(path)
    for folder in declared:
        if folder != root and path.is_relative_to(folder):
            return folder, _dotted(path, folder)
    from_root = _dotted(path, root)
    if from_root in imported:
        return root, from_root
    importable = all(part.isidentifier() for part in from_root.split("."))
    if is_test(path.relative_to(root)) or path.stem in imported or not importable:
        return path.parent, path.stem
    return root, from_root


def _dotted(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _of_pyproject(path: Path) -> Iterator[str]:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return
    setuptools = _table(tool, "setuptools")
    package_dir = _table(setuptools, "package-dir").get("")
    yield from _strings([package_dir])
    yield from _strings(_table(setuptools, "packages", "find").get("where"))
    yield from _strings(_table(tool, "pytest", "ini_options").get("pythonpath"))
    wheel = _table(tool, "hatch", "build", "targets", "wheel")
    yield from (str(PurePath(name).parent) for name in _strings(wheel.get("packages")))
    packages = _table(tool, "poetry").get("packages")
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict):
            yield from _strings([package.get("from")])


def _of_ini(path: Path) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None)
    with contextlib.suppress(configparser.Error, UnicodeDecodeError):
        parser.read(path, encoding="utf-8")
    for section in ("pytest", "tool:pytest"):
        yield from parser.get(section, "pythonpath", fallback="").split()
    yield from parser.get("options.packages.find", "where", fallback="").split()
    for line in parser.get("options", "package_dir", fallback="").split("\n"):
        package, _, folder = line.partition("=")
        if folder and not package.strip():
            yield folder.strip()


def _table(tables: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        tables = tables.get(key) if isinstance(tables, dict) else None
    return tables if isinstance(tables, dict) else {}


def _strings(values: Any) -> Iterator[str]:
    for value in [values] if isinstance(values, str) else values or ():
        if isinstance(value, str) and value:
            yield value
