"""Record the shapes that a running job calls its kernels with, for the oracle to try.

    with gatecert.record_launches("launches.jsonl"):        # the entries of gatecert.toml
        serve()

    @gatecert.record_launches("launches.jsonl", operation="softmax")
    def softmax(x): ...

A call costs a dictionary look-up of shapes, strides and dtypes, which the host knows: no value is
read and no device waited for. What goes wrong in here is counted and said at the end, never
raised. Inside a region that `torch.compile` traces nothing is recorded.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import inspect
import multiprocessing.util
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from torch.compiler import is_compiling

from gatecert.recorded_calls import CallCounts, Key, look_at

Function = TypeVar("Function", bound=Callable[..., Any])

_MOST_KEYS = 10_000
"""Further distinct calls are counted, not kept."""
_FLUSH_S = 60.0
_LOOK_EVERY = 256
"""Calls between looks at the clock."""
_RECORDERS: weakref.WeakSet[Recorder] = weakref.WeakSet()


def record_launches(
    path: str | Path,
    *,
    operation: str = "",
    entries: Mapping[str, str] | None = None,
    config: str | Path | None = None,
) -> Recorder:
    """A context in which calls of entries are recorded, or a decorator of one function.

    `entries` maps `module:attribute` to operations; without it they are those of `config`, by
    default of the gatecert.toml of this folder. `operation` is that of a decorated function.
    The file gets one line per distinct call with its count; several processes may append to it.
    """
    return Recorder(Path(path), operation, entries, config)


class Recorder:
    """Counts calls by what their arguments were like."""

    def __init__(
        self,
        path: Path,
        operation: str,
        entries: Mapping[str, str] | None,
        config: str | Path | None,
    ) -> None:
        self._path = path.absolute()
        self._operation = operation
        self._entries = entries
        self._config = config
        self._undo: list[Callable[[], None]] = []
        self._targets: list[CallCounts] = []
        self._forget()
        _RECORDERS.add(self)
        multiprocessing.util.register_after_fork(self, _flush_in_the_end)

    def __call__(self, function: Function) -> Function:
        """Record every call of the function, until the process ends."""
        module, name = function.__module__, function.__qualname__
        atexit.register(self.close)
        return self._recorded(function, self._operation, f"{module}:{name}", "")

    def __enter__(self) -> Recorder:
        try:
            for entry, operation, subject in self._wanted():
                self._replace(entry, operation, subject)
        except Exception as error:
            self._note(error)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._undo:
            self._undo.pop()()
        self.close()

    def close(self) -> None:
        """Write what is counted, and say on stderr how it went."""
        self._open = False
        self.flush()
        said = f"gatecert: {self._calls} calls of {len(self._targets)} entries in {self._path}"
        if self._left_out:
            said += f"; {self._left_out} more were of too many kinds to keep"
        if self._errors:
            said += f"; {self._errors} errors, the first: {self._first_error}"
        with contextlib.suppress(Exception):
            print(said, file=sys.stderr)

    def flush(self) -> None:
        """Append what was counted since the last time, as whole lines in one write."""
        try:
            with self._lock:
                pending = [(target, target.take()) for target in self._targets]
            lines = [
                msgspec.json.encode(target.record(key, count)) + b"\n"
                for target, counts in pending
                for key, count in counts.items()
            ]
            if lines:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                _append(self._path, b"".join(lines))
        except Exception as error:
            self._note(error)

    def _forget(self) -> None:
        """Start from nothing: at first, and in a forked child, whose parent writes its own."""
        self._lock = threading.Lock()
        self._open = True
        self._calls = self._left_out = self._errors = 0
        self._first_error = ""
        self._due = time.monotonic() + _FLUSH_S
        for target in self._targets:
            target.counts = {}

    def _wanted(self) -> Iterator[tuple[str, str, str]]:
        """(entry, operation, subject) of everything to be recorded."""
        if self._entries is not None:
            yield from ((entry, operation, "") for entry, operation in self._entries.items())
            return
        from gatecert.config import find_config, load_config
        from gatecert.errors import UsageError

        path = Path(self._config) if self._config else find_config(Path.cwd())
        if path is None:
            raise UsageError("no gatecert.toml here: name entries or a config")
        for subject in load_config(path).subjects:
            sys.path += [folder for folder in subject.import_paths if folder not in sys.path]
            if subject.operation is not None:
                yield subject.entry, subject.operation, subject.name

    def _replace(self, entry: str, operation: str, subject: str) -> None:
        """Put the recording function wherever a module holds the entry."""
        try:
            module, _, path = entry.partition(":")
            owner: Any = importlib.import_module(module)
            *above, name = path.split(".")
            for part in above:
                owner = getattr(owner, part)
            found = getattr(owner, name)
            if not inspect.isroutine(found):
                raise TypeError(f"{entry} is a {type(found).__name__}, not a function")
            recorded = self._recorded(found, operation, entry, subject)
            if isinstance(owner, type):
                self._set(owner, name, staticmethod(recorded))
                return
            for holder in list(sys.modules.values()):
                for alias, value in _names_in(holder):
                    if value is found and holder is not sys.modules[__name__]:
                        self._set(holder, alias, recorded)
        except Exception as error:
            self._note(error)

    def _set(self, owner: Any, name: str, value: Any) -> None:
        own = vars(owner)
        before = own.get(name)
        undo = functools.partial(setattr, owner, name, before)
        self._undo.append(undo if name in own else functools.partial(delattr, owner, name))
        setattr(owner, name, value)

    def _recorded(self, function: Function, operation: str, entry: str, subject: str) -> Function:
        target = CallCounts(function, operation, entry, subject)
        self._targets.append(target)

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if not is_compiling() and self._open:
                self._count(target, args, kwargs)
            return function(*args, **kwargs)

        return recorded  # type: ignore[return-value]

    def _count(self, target: CallCounts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            key: Key = tuple([look_at(value) for value in args])
            if kwargs:
                key += tuple([(name, look_at(value)) for name, value in kwargs.items()])
            with self._lock:
                counts = target.counts
                if key in counts:
                    counts[key] += 1
                elif len(target.known) < _MOST_KEYS or key in target.known:
                    counts[key] = 1
                    target.known.add(key)
                else:
                    self._left_out += 1
                self._calls += 1
                due = not self._calls % _LOOK_EVERY and time.monotonic() > self._due
            if due:
                self._due = time.monotonic() + _FLUSH_S
                self.flush()
        except Exception as error:
            self._note(error)

    def _note(self, error: Exception) -> None:
        self._errors += 1
        self._first_error = self._first_error or f"{type(error).__name__}: {error}"


def _append(path: Path, text: bytes) -> None:
    """One write to the end of the file: lines of several processes never mix."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        while text:
            text = text[os.write(handle, text) :]
    finally:
        os.close(handle)


def _names_in(module: Any) -> Iterable[tuple[str, Any]]:
    """What a module holds so far; one that loads itself on first use is not made to."""
    try:
        return list(object.__getattribute__(module, "__dict__").items())
    except AttributeError:
        return ()


def _flush_in_the_end(recorder: Recorder) -> None:
    """A worker of `multiprocessing` runs no exit handlers but its own kind."""
    multiprocessing.util.Finalize(recorder, recorder.flush, exitpriority=0)


def _after_fork() -> None:
    for recorder in _RECORDERS:
        recorder._forget()


os.register_at_fork(after_in_child=_after_fork)
