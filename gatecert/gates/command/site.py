"""What runs inside every Python process that a command gate starts.

`command_run` puts a `sitecustomize` first on PYTHONPATH, which calls `start`. It costs a few
milliseconds where nothing of torch or Triton is imported. Once Triton is, the lane is switched on:
the interpreter's as in the sandbox, or the one that records what compiled kernels are launched.
What the process does is written to a report: at each new launch, since a worker may be killed,
and when the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from gatecert.errors import described
from gatecert.gates.failing import is_no_verdict
from gatecert.lanes.cuda.failures import is_fault
from gatecert.mutants.overlay import install_overlay, overlay_proof
from gatecert.sandbox.imports import is_users
from gatecert.sandbox.placing import Placing, use_copies
from gatecert.sandbox.reads import watch_reads


def start(path: str) -> None:
    """Do what the file at `path` asks for (see `command_run.SiteRequest`)."""
    asked = json.loads(Path(path).read_text(encoding="utf-8"))
    report = Report(asked)
    if asked["tree"]:
        use_copies(Placing(asked["tree"], tuple(asked["roots"])))
    report.write_at_the_end()
    install_overlay(asked["files"])
    then = {"torch": report.torch_is_here, "triton": report.triton_is_here}
    if asked["watch"]:
        then[asked["entry"].partition(":")[0]] = report.entry_is_here
    imports = AfterImport(then)
    sys.meta_path.insert(0, imports)


class Report:
    """What this process has to tell, and where."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._asked = asked
        self._contexts = contextlib.ExitStack()
        self._torch_ready = self._triton_waits = False
        self._log: Any = None
        self._stopwatch: Any = None
        self._watch: Any = None
        self._launches: dict[Any, list[Any]] = {}
        self._entry_calls: Any = None
        self._by_entry: set[Any] = set()
        self._uncaught: BaseException | None = None
        self._failure = ""
        self._calls_before = 0
        self._seconds_before = 0.0
        self._reads = watch_reads(is_users)
        self._name_file()

    def write_at_the_end(self) -> None:
        """Write the report however this process ends, if Python has a say in it."""
        leave, tell = os._exit, sys.excepthook

        def write_and_leave(status: int) -> NoReturn:
            self.write()
            leave(status)

        def note_and_tell(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            self._uncaught = error
            tell(kind, error, trace)

        # Children of multiprocessing leave by it, without the functions of `atexit`.
        os._exit = write_and_leave
        sys.excepthook = note_and_tell
        atexit.register(self.write)
        os.register_at_fork(after_in_child=self._start_over)

    def torch_is_here(self) -> None:
        """Torch is imported."""
        self._torch_ready = True
        if self._asked["watch"]:
            with contextlib.suppress(Exception):  # evidence must never change what happens
                self._begin_to_watch()
        if self._triton_waits:
            self.triton_is_here()

    def triton_is_here(self) -> None:
        """Triton is imported, and nothing with kernels yet; torch may be on its way."""
        self._triton_waits = "torch" in sys.modules and not self._torch_ready
        if self._triton_waits:
            return
        try:
            self._begin_lane()
        except Exception as error:
            self._failure = described(error)
            raise

    def entry_is_here(self) -> None:
        """The entry's module is imported; where it imports torch itself, the watch begins in the
        middle of that and has not seen it begin."""
        module = sys.modules.get(self._asked["entry"].partition(":")[0])
        if self._watch is not None and module is not None:
            self._watch.imported(module)

    def write(self) -> None:
        """Write all that is known so far."""
        body = self._body()
        msgspec = sys.modules.get("msgspec")
        # Infinite tolerances stay what they are: msgspec's own JSON has none.
        encoded = json.dumps(body if msgspec is None else msgspec.to_builtins(body)).encode()
        partial = f"{self._path}.partial"
        with contextlib.suppress(OSError):
            Path(partial).write_bytes(encoded)
            Path(partial).replace(self._path)

    def note_launch(self, launch: Any) -> None:
        """Count a launch; one of a new compiled form is written down at once."""
        form = (launch.kernel, launch.types, launch.constexprs)
        key = (*form, launch.num_warps, launch.num_stages, launch.launcher)
        if self._entry_calls.under_way:
            self._by_entry.add((launch.kernel, launch.launcher))
        if key in self._launches:
            self._launches[key][1] += 1
            return
        self._launches[key] = [launch, 1]
        self.write()

    def _name_file(self) -> None:
        name = f"{time.monotonic_ns():020d}-{os.getpid()}.json"
        self._path = str(Path(self._asked["reports"]) / name)

    def _start_over(self) -> None:
        """This is a forked child: what its parent did is not its own."""
        self._name_file()
        self._launches.clear()
        self._by_entry.clear()
        self._uncaught = None
        self._calls_before = _adversary_calls()
        self._seconds_before = self._stopwatch.seconds if self._stopwatch else 0.0

    def _begin_to_watch(self) -> None:
        from gatecert.gates.watching.watch import watch

        kernels = frozenset(self._asked["kernels"])
        watching = watch(subject_kernels=kernels, entry=self._asked["entry"])
        self._watch = self._contexts.enter_context(watching)

    def _evidence(self) -> Any:
        with contextlib.suppress(Exception):
            return self._watch.evidence() if self._watch is not None else None
        return None

    def _begin_lane(self) -> None:
        from gatecert.lanes import interpreter
        from gatecert.lanes.records import GuardPolicy
        from gatecert.mutants.entry_calls import entry_observed
        from gatecert.sandbox.entry_launches import EntryCalls

        if self._asked["interpret"]:
            interpreter.activate()
        else:
            from gatecert.lanes.cuda.launches import activate

            activate()
        enter = self._contexts.enter_context
        self._log = enter(interpreter.guarded(GuardPolicy.LENIENT))
        self._stopwatch = enter(interpreter.timed())
        self._entry_calls = EntryCalls()
        enter(entry_observed(self._entry_calls, all_threads=True))
        if self._asked["capture"]:
            from gatecert.diagnosis.calls import CallCapture

            path = f"{self._asked['capture']}/{os.getpid()}.calls"
            capture = CallCapture(path, self._asked["captured"])
            enter(entry_observed(capture, all_threads=True))
            enter(interpreter.arguments_shown(capture))
        enter(interpreter.recording(Launches(self.note_launch)))

    def _body(self) -> dict[str, Any]:
        files = self._asked["files"]
        missed = set(overlay_proof(files)) if files else set()
        error = self._uncaught
        launched = [launch.kernel for launch, _ in self._launches.values()]
        failures = self._log.failures() if self._log is not None else ()
        seconds = self._stopwatch.seconds - self._seconds_before if self._stopwatch else 0.0
        read = self._reads.users_files()
        return {
            "pid": os.getpid(),
            "python": sys.executable,
            "proven": [path for path in files if path not in missed],
            "stale": [path for path in missed if _is_imported(path)],
            "launches": list(self._launches.values()),
            "entry_calls": self._entry_calls.count if self._entry_calls is not None else 0,
            "by_entry": sorted(self._by_entry),
            "modules": _files_of({name.partition(":")[0] for name in launched}),
            "findings": self._log.findings() if self._log is not None else (),
            "failures": [*failures, *filter(None, [self._failure])],
            "adversary_calls": _adversary_calls() - self._calls_before,
            "kernels_s": seconds,
            "uncaught": "" if error is None else described(error),
            "no_verdict": is_no_verdict(error),
            "faulted": is_fault(error),
            "evidence": self._evidence(),
            "files": read,
            "variables": self._reads.asked(),
            "folders": self._reads.users_folders(),
            "sought": self._reads.users_sought(read),
        }


class Launches(list[Any]):
    """A list of launches that hands on what is put into it and keeps nothing."""

    def __init__(self, note: Callable[[Any], None]) -> None:
        super().__init__()
        self._note = note

    def append(self, launch: Any) -> None:
        """Hand it on."""
        self._note(launch)


class AfterImport(MetaPathFinder):
    """A finder that calls functions right after the modules of these names were imported."""

    def __init__(self, then: Mapping[str, Callable[[], None]]) -> None:
        self._then = dict(then)
        self._searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, with a loader that calls the function."""
        if fullname not in self._then or self._searching:
            return None
        self._searching = True  # another finder may ask all the others in its turn
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(fullname, path, target) if find else None
                if spec is not None:
                    if spec.loader is not None:
                        spec.loader = LoaderThen(spec.loader, self._then[fullname])
                    return spec
        finally:
            self._searching = False
        return None


class LoaderThen(Loader):
    """A loader that calls a function once the module is loaded, and leaves no trace in it."""

    def __init__(self, loader: Any, then: Callable[[], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the loader does."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """As the loader does, and then call."""
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _adversary_calls() -> int:
    adversaries = sys.modules.get("gatecert.mutants.adversaries")
    return int(adversaries.calls()) if adversaries is not None else 0


def _files_of(modules: Iterable[str]) -> dict[str, str]:
    files = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in sorted(modules))
    return {name: path for name, path in files if isinstance(path, str)}


def _is_imported(path: str) -> bool:
    """Was the file imported, or is it the script that runs?"""
    name, real = os.path.split(path)[1], os.path.realpath(path)
    origins = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    # The script's own `__file__` is gone by the time that it ends.
    origins.append(getattr(getattr(sys.modules.get("__main__"), "__loader__", None), "path", None))
    return any(
        isinstance(origin, str)
        and os.path.split(origin)[1] == name
        and os.path.realpath(origin) == real
        for origin in origins
    )
