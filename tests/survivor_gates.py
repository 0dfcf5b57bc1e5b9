"""The gates of the survivor situations, run in this process on originals or on mutants.

A part of a gate is what judges by itself: a test, or all of a function or script.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gatecert.config import Config, load_config
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from gatecert.subjects import Subject
from tests.survivors import FOLDER

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an entry: copies of its arguments before it and of its results."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: Tensors


Calls = list[tuple[str, Call]]
"""Calls by the name of the entry, in order."""


@dataclass(slots=True)
class Heard:
    """What a gate's run on some code gave."""

    accepted: bool = True
    calls: Calls = field(default_factory=list)
    launched: set[str] = field(default_factory=set)


def _recorded(entry: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    @functools.wraps(entry)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = tuple(map(copied, args)), {name: copied(arg) for name, arg in kwargs.items()}
        result = entry(*args, **kwargs)
        calls.append((entry.__name__, Call(*given, tuple(map(copied, results_of(result))))))
        return result

    return call


def copied(thing: Any) -> Any:
    """A tensor's copy; anything else itself."""
    return thing.clone() if isinstance(thing, torch.Tensor) else thing


def results_of(result: Any) -> Tensors:
    """What an entry returned, as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def load(name: str, path: Path, entries: list[str], calls: Calls) -> ModuleType:
    """Import a file as a module of small_kernels; calls of its entries are added to `calls`."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    package, _, leaf = name.rpartition(".")
    setattr(importlib.import_module(package), leaf, module)
    for entry in entries:
        setattr(module, entry, _recorded(getattr(module, entry), calls))
    return module


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a gate that judges by itself: a test, or all of a function or script."""

    name: str
    run: Callable[[], bool]


def parts_of(config: Config, gate: str, subject: Subject) -> list[Part]:
    """The gate as functions, its modules freshly imported."""
    table = config.gates[gate]
    for name in list(sys.modules):
        if name.startswith(("suites.", "gates.")) or name == "check_relative_rms":
            del sys.modules[name]
    if table.kind == "pytest":
        module = importlib.import_module(table.args[0].removesuffix(".py").replace("/", "."))
        return [part for name in dir(module) for part in _tests(name, getattr(module, name))]
    if table.kind == "callable":
        name, _, attribute = table.callable.partition(":")
        function = getattr(importlib.import_module(name), attribute)
        home, _, entry = subject.entry.partition(":")
        candidate = getattr(sys.modules[home], entry)
        return [Part(gate, lambda: function(candidate) is True)]
    script = importlib.import_module(table.command[1].removesuffix(".py"))
    return [Part(gate, lambda: script.main() == 0)]


def _tests(name: str, test: Any) -> Iterator[Part]:
    if not name.startswith("test_"):
        return
    (mark,) = getattr(test, "pytestmark", None) or (None,)
    if mark is None:
        yield Part(name, lambda: _passes(test))
        return
    for number, value in enumerate(mark.args[1]):
        yield Part(f"{name}-{number}", functools.partial(_passes, test, value))


def _passes(test: Callable[..., None], *args: Any) -> bool:
    try:
        test(*args)
    except AssertionError:
        return False
    return True


def hear(parts: list[Part], calls: Calls) -> Heard:
    """Run parts of a gate; `calls` is where calls of entries are recorded."""
    heard = Heard()
    calls.clear()
    with (
        interpreter.guarded(GuardPolicy.LENIENT),
        interpreter.repeatable_memory(),
        interpreter.recording() as launches,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        for part in parts:
            heard.accepted &= part.run()
    heard.calls = list(calls)
    heard.launched = {launch.kernel.partition(":")[0] for launch in launches}
    return heard


@dataclass(slots=True)
class Bench:
    """The originals in this process, and what each gate made of them."""

    config: Config
    subjects: dict[str, Subject]
    calls: Calls = field(default_factory=list)
    """Where all entries record their calls."""
    heard: dict[tuple[str, str, str], Heard] = field(default_factory=dict)
    """By gate, subject (of a function; else "") and part."""

    def key(self, gate: str, subject: Subject, part: str) -> tuple[str, str, str]:
        """What a run is known by."""
        kind = self.config.gates[gate].kind
        return gate, subject.name if kind == "callable" else "", part

    def listen(self, gate: str, subject: Subject) -> None:
        """Run the gate on the originals, if it was not yet."""
        for part in parts_of(self.config, gate, subject):
            key = self.key(gate, subject, part.name)
            if key not in self.heard:
                self.heard[key] = hear([part], self.calls)

    def relevant(self, gate: str, subject: Subject, module: str) -> tuple[list[str], Heard]:
        """The parts that launch kernels of the module, and what they gave together."""
        mine = {
            key[2]: heard
            for key, heard in self.heard.items()
            if key[:2] == self.key(gate, subject, "")[:2]
        }
        wanted = [part for part, heard in mine.items() if module in heard.launched]
        total = Heard(accepted=all(heard.accepted for heard in mine.values()))
        for part in wanted:
            total.calls += mine[part].calls
        return wanted, total


def set_up() -> Bench:
    """Import the originals, recorded."""
    interpreter.activate()
    sys.path.insert(0, str(FOLDER))
    config = load_config(FOLDER / "gatecert.toml")
    bench = Bench(config, {subject.name: subject for subject in config.subjects})
    for path in sorted((FOLDER / "small_kernels").glob("[!_]*.py")):
        name = f"small_kernels.{path.stem}"
        load(name, path, entries_of(bench, name), bench.calls)
    return bench


def entries_of(bench: Bench, module: str) -> list[str]:
    """The names of the subjects' entries in a module."""
    entries = (subject.entry.partition(":") for subject in bench.subjects.values())
    return [entry for home, _, entry in entries if home == module]
