"""Where the copy of a path lies, and how a process comes to use copies in place of the originals.

Imports the standard library alone: every Python process that a gate starts runs it first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import (
    BuiltinImporter,
    FrozenImporter,
    ModuleSpec,
    PathFinder,
)
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_KEPT = frozenset({"HOME", "TMPDIR"})
"""Variables that are no paths into a project, even where the project lies there."""
_STANDARD = (BuiltinImporter, FrozenImporter, PathFinder)


@dataclass(frozen=True, slots=True)
class Placing:
    """`tree` mirrors absolute paths; below `roots` the mirror is complete."""

    tree: str
    roots: tuple[str, ...]

    def place(self, path: str) -> str | None:
        """The copy of a path; None where there is none: it lies outside, or is used in place."""
        real = os.path.realpath(path)
        if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots):
            return None
        copy = self.tree + real
        inside = os.path.realpath(copy).startswith(self.tree + "/")
        return copy if inside and Path(copy).exists() else None

    def place_argument(self, text: str) -> str:
        """An argument or a variable's value that may name a path, existing or to be made:
        `/path`, `--option=/path`, `/path/test_x.py::test_y`, `/path:/path`."""
        word, colons, rest = text.partition("::")
        option, equals, value = ("", "", word) if word.startswith("/") else word.partition("=")
        if not value.startswith("/"):
            return text
        parts = (self._place_any(part) for part in value.split(os.pathsep))
        return option + equals + os.pathsep.join(parts) + colons + rest

    def _place_any(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        if os.path.lexists(path):
            return self.place(path) or path
        folder, name = os.path.split(path)
        copy = self.place(folder)
        return path if copy is None else f"{copy}/{name}"

    def unplace(self, text: str) -> str:
        """The text with every path as the user knows it."""
        return text.replace(self.tree, "")


def use_copies(placing: Placing) -> None:
    """From now on this process imports from the copies, by whatever finder."""
    sys.path[:] = [placing.place(path) or path for path in sys.path]
    sys.meta_path[:] = [
        finder if finder in _STANDARD else PlacedFinder(finder, placing) for finder in sys.meta_path
    ]


def hand_down_copies(placing: Placing) -> None:
    """Name the copies in every environment variable that names the originals."""
    python_path = os.environ.get("PYTHONPATH")
    if python_path:
        parts = (str(Path.cwd() / part) for part in python_path.split(os.pathsep) if part)
        os.environ["PYTHONPATH"] = os.pathsep.join(parts)
    for name, value in list(os.environ.items()):
        if name not in _KEPT and "/" in value:
            os.environ[name] = placing.place_argument(value)


class PlacedFinder:
    """A finder, such as that of an editable install, whose finds are moved to their copies."""

    def __init__(self, finder: Any, placing: Placing) -> None:
        self._finder = finder
        self._placing = placing

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the finder finds, in its copy where it has one."""
        find = getattr(self._finder, "find_spec", None)
        spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
        if spec is None:
            return None
        locations = spec.submodule_search_locations
        if isinstance(locations, list):
            locations[:] = [self._placing.place(folder) or folder for folder in locations]
        copy = self._placing.place(spec.origin) if spec.has_location and spec.origin else None
        if copy is None:
            return spec
        return spec_from_file_location(fullname, copy, submodule_search_locations=locations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)
