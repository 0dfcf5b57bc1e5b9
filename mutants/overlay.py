"""Import a mutated text in place of a file, in this process only and without touching disk.

Python, Triton's compiler and Triton's interpreter all see the overlay: modules are compiled
from it, and `linecache`, where Triton takes a kernel's source from, holds it too.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import io
import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any, SupportsIndex

from gatecert.errors import InternalError
from gatecert.mutants.torch_operators import decorated, is_operator

_MOST_WRAPPERS = 16
"""Wrappers around one kernel (autotuner, heuristics, a team's own) that are looked through."""
_noted: dict[str, set[str]] = {}
"""By a file's name: the modules of such files that `note_imports` has seen."""


def note_imports() -> None:
    """Remember what is imported now, for the overlays of children that are forked hereafter.

    To look at each of some two thousand modules copies 20 MB of a child's memory: half of the
    time of a child that does little.
    """
    for name in _imported_since():
        for path in _origins(sys.modules[name]):
            _noted.setdefault(os.path.split(path)[1], set()).add(name)
    # What is imported from now on comes after this module.
    sys.modules[__name__] = sys.modules.pop(__name__)


def _imported_since() -> list[str]:
    """The modules that came after the last `note_imports`; all, if there was none."""
    names = reversed(sys.modules)
    return [*itertools.takewhile(lambda name: name != __name__, names)] if _noted else [*names]


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
    suspects = set().union(*(_noted.get(file, ()) for file in overlay.names))
    for name in (*_imported_since(), *suspects.intersection(sys.modules)):
        for path in _origins(sys.modules[name]):
            if overlay.text_of(path) is not None:
                raise InternalError(f"{name} was imported before its overlay was installed")
    for path in {*files, *(os.path.realpath(path) for path in files)}:
        overlay.show_source(path)
    overlay.patch_file_loader()
    sys.meta_path = _OverlayFirst([overlay, *sys.meta_path])


def overlay_proof(files: Mapping[str, str]) -> list[str]:
    """The paths that were *not* imported with the given text; empty if all were.

    A path with a kernel whose source, asked for as Triton asks, is not that kernel's lines of
    the text is among them; so is one with a launcher, or any other function, that was not
    compiled from the text, be it the one that an operator of torch runs.
    """
    overlay = _installed()
    if overlay is None:
        return list(files)
    return [path for path, text in files.items() if not _is_proven(overlay, path, text)]


def _is_proven(overlay: _Overlay, path: str, text: str) -> bool:
    real, lines = os.path.realpath(path), _source_lines(text)
    if overlay.text_of(path) != text or real not in overlay.read:
        return False
    modules = [sys.modules[name] for name in overlay.read[real] if name in sys.modules]
    kernels = (f for m in modules for f in _functions_of(m, _function_of_kernel))
    functions = (f for m in modules for f in _functions_of(m, _plain_function))
    return (
        linecache.getlines(path) == lines
        and all(_is_shown(f, lines) for f in kernels if _is_from(f, real))
        and all(f.__code__ in overlay.compiled[real] for f in functions if _is_from(f, real))
    )


def _is_from(function: FunctionType, real: str) -> bool:
    return os.path.realpath(function.__code__.co_filename) == real


class _Overlay(importlib.abc.MetaPathFinder):
    """Finds what the other finders find, and hands overlaid files to a plain file loader.

    Other loaders (pytest's, for test modules) would read the file themselves.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._texts = {os.path.realpath(path): text for path, text in files.items()}
        self.names = {os.path.split(path)[1] for path in self._texts}
        self.read: dict[str, set[str]] = {}
        """Real path to the names of the modules that were loaded from its text."""
        self.compiled: dict[str, set[CodeType]] = {}
        """Real path to the code of every function that was compiled from its text."""

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
        if os.path.split(path)[1] not in self.names:
            return None  # spares a realpath per import
        return self._texts.get(os.path.realpath(path))

    def show_source(self, path: str) -> None:
        """Let `linecache` give the overlay's text; without a time stamp it is never dropped."""
        text = self._texts[os.path.realpath(path)]
        linecache.cache[path] = (len(text), None, _source_lines(text), path)

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
            self.read.setdefault(os.path.realpath(path), set()).add(loader.name)
            return text.encode()

        def path_stats(loader: SourceFileLoader, path: str) -> Mapping[str, Any]:
            if self.text_of(path) is not None:
                raise OSError(f"{path} is overlaid")
            return read_stats(loader, path)

        compile_source = SourceFileLoader.source_to_code

        def source_to_code(loader: SourceFileLoader, data: Any, path: Any, **how: Any) -> CodeType:
            code: CodeType = compile_source(loader, data, path, **how)
            if self.text_of(path) is not None:
                self.compiled.setdefault(os.path.realpath(path), set()).update(nested_codes(code))
            return code

        SourceFileLoader.source_to_code = source_to_code  # type: ignore[assignment, method-assign]
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


def _functions_of(
    module: ModuleType, function_of: Callable[[Any], FunctionType | None]
) -> Iterator[FunctionType]:
    """The functions of one sort that a module and its classes hold."""
    owners: list[Any] = [module]
    for owner in owners:  # grows on the way
        for value in list(vars(owner).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                owners += [value] if value not in owners else []
            elif (function := function_of(value)) is not None:
                yield function


def _plain_function(value: Any) -> FunctionType | None:
    """The Python function beneath what decorators wrap around it; None for anything else."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if is_operator(value):
        value = decorated(value)
    function = inspect.unwrap(value) if isinstance(value, FunctionType) else None
    return function if isinstance(function, FunctionType) else None


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """The code and that of all functions and classes within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_codes(constant)


def _function_of_kernel(value: Any) -> FunctionType | None:
    """The function beneath a kernel and its wrappers; None for anything but a kernel.

    Triton's objects are told by where their class comes from: it may not be imported here.
    """
    if isinstance(value, type | ModuleType):
        return None  # most values of a module: spares the search
    if isinstance(value, staticmethod):
        value = value.__func__
    is_kernel = False
    for _ in range(_MOST_WRAPPERS):
        if isinstance(value, FunctionType):
            function = inspect.unwrap(value) if is_kernel else None
            return function if isinstance(function, FunctionType) else None
        kinds = type(value).__mro__
        is_kernel = is_kernel or any(k.__module__.partition(".")[0] == "triton" for k in kinds)
        value = inspect.getattr_static(value, "fn", None)
    return None


def _is_shown(function: FunctionType, lines: list[str]) -> bool:
    """Does `inspect` look for the function's source in these lines, and where it was compiled?

    These two settle what `inspect.getsource` gives; the tokenizing that it adds costs more than
    all the rest of the proof.
    """
    try:
        return inspect.findsource(function) == (lines, function.__code__.co_firstlineno - 1)
    except (OSError, TypeError):
        return False


def _source_lines(text: str) -> list[str]:
    """Lines as Python's compiler counts them: unlike `str.splitlines`, no form feed ends one."""
    lines = io.StringIO(text.removeprefix("\ufeff"), newline=None).readlines()
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines
