"""Import a mutated text in place of a file, in this process only and without touching disk.

Python, Triton's compiler and Triton's interpreter all see the overlay: modules are compiled
from it, and `linecache`, where Triton takes a kernel's source from, holds it too.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import linecache
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Any, SupportsIndex

from gatecert.errors import InternalError


def install_overlay(files: Mapping[str, str]) -> None:
    """From now on, importing one of these files (path -> whole text) imports the given text.

    Call it once, in a child process, before anything of the target is imported. Also switches
    off the writing of byte code, so that a run leaves no `__pycache__` in the user's tree.

    Raises:
        InternalError: an overlay is installed already, or a target was imported before: names
            bound then would go on showing the original.
    """
    sys.dont_write_bytecode = True
    if not files:
        return
    if _installed() is not None:
        raise InternalError("an overlay is already installed in this process")
    overlay = _Overlay(files)
    for name, module in list(sys.modules.items()):
        if any(overlay.text_of(path) is not None for path in _origins(module)):
            raise InternalError(f"{name} was imported before its overlay was installed")
    for path in {*files, *(os.path.realpath(path) for path in files)}:
        overlay.show_source(path)
    overlay.patch_file_loader()
    sys.meta_path = _OverlayFirst([overlay, *sys.meta_path])


def overlay_proof(files: Mapping[str, str]) -> list[str]:
    """The paths that were *not* imported with the given text; empty if all were."""
    overlay = _installed()
    return [
        path
        for path, text in files.items()
        if overlay is None
        or overlay.text_of(path) != text
        or os.path.realpath(path) not in overlay.read
        or "".join(linecache.getlines(path)) != _with_final_newline(text)
    ]


class _Overlay(importlib.abc.MetaPathFinder):
    """Finds what the other finders find, and hands overlaid files to a plain file loader.

    Other loaders (pytest's, for test modules) would read the file themselves.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._texts = {os.path.realpath(path): text for path, text in files.items()}
        self._names = {os.path.split(path)[1] for path in self._texts}
        self.read: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is None:
                continue
            if spec.origin is None or self.text_of(spec.origin) is None:
                return None
            self.show_source(spec.origin)
            spec.loader = SourceFileLoader(fullname, spec.origin)
            return spec
        return None

    def text_of(self, path: str) -> str | None:
        """The text that stands for the file, however its path is spelled."""
        if os.path.split(path)[1] not in self._names:
            return None  # spares a realpath per import
        return self._texts.get(os.path.realpath(path))

    def show_source(self, path: str) -> None:
        """Let `linecache` give the overlay's text; without a time stamp it is never dropped."""
        text = _with_final_newline(self._texts[os.path.realpath(path)])
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)

    def patch_file_loader(self) -> None:
        """Serve overlaid files to every file loader, also one made by
        `importlib.util.spec_from_file_location`; without file stats Python neither reads nor
        writes byte code."""
        read_file, read_stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

        def get_data(loader: SourceFileLoader, path: str) -> bytes:
            text = self.text_of(path)
            if text is None:
                return read_file(loader, path)
            self.show_source(path)
            self.read.add(os.path.realpath(path))
            return text.encode()

        def path_stats(loader: SourceFileLoader, path: str) -> Mapping[str, Any]:
            if self.text_of(path) is not None:
                raise OSError(f"{path} is overlaid")
            return read_stats(loader, path)

        SourceFileLoader.get_data = get_data  # type: ignore[assignment, method-assign]
        SourceFileLoader.path_stats = path_stats  # type: ignore[assignment, method-assign]


class _OverlayFirst(list[Any]):
    """`sys.meta_path` with the overlay first, also after pytest puts its own finder there."""

    def insert(self, index: SupportsIndex, finder: Any) -> None:
        super().insert(max(1, int(index)), finder)


def _installed() -> _Overlay | None:
    return next((f for f in sys.meta_path if isinstance(f, _Overlay)), None)


def _origins(module: ModuleType) -> Iterable[str]:
    spec = getattr(module, "__spec__", None)
    for path in (getattr(module, "__file__", None), getattr(spec, "origin", None)):
        if isinstance(path, str):
            yield path


def _with_final_newline(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"
