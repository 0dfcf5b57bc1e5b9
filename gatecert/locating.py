"""Where a module's source lies: found without importing it or any package above it."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path


def find_source(module: str, folders: Sequence[str] = ()) -> Path | None:
    """The source file of a module, looked for in `folders` and then as Python would.

    None where there is none, or where only importing a package could tell.
    """
    spec = None
    search: Sequence[str] | None = None
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        spec = _find(name, search, folders)
        if spec is None:
            return None
        search = spec.submodule_search_locations
        if search is None and depth < len(parts):
            return None
    if spec is None or not spec.has_location or not spec.origin:
        return None
    path = Path(spec.origin)
    return path if path.suffix == ".py" and path.is_file() else None


def module_of(path: Path) -> str:
    """The dotted name that a file has in its outermost package, told by `__init__.py` files."""
    folder = path.resolve().parent
    parts = [] if path.name == "__init__.py" else [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def package_root(path: Path) -> Path:
    """The folder that holds the file's outermost package, or the file itself."""
    folder = path.resolve().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _find(
    name: str, search: Sequence[str] | None, folders: Sequence[str]
) -> importlib.machinery.ModuleSpec | None:
    finder = importlib.machinery.PathFinder
    if search is not None:
        return finder.find_spec(name, search)
    found = finder.find_spec(name, [*folders, *sys.path])
    if found is not None:
        return found
    # An editable install may answer through a finder of its own.
    for other in sys.meta_path:
        if getattr(other, "__module__", "").startswith("__editable__"):
            found = other.find_spec(name, None)
            if found is not None:
                return found
    return None
