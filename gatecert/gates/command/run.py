"""Run a command with the overlay in every Python process that it starts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import gatecert
from gatecert.gates.command.elsewhere import Elsewhere, read_reports
from gatecert.in_force import InForce
from gatecert.lanes.cuda.gpu import with_gpus
from gatecert.processes import die_with_parent
from gatecert.sandbox.placing import Placing

VARIABLE = "GATECERT_SITE"
_OUTPUT_BYTES = 1 << 20
_CAPTURE: InForce[tuple[str, tuple[str, ...]]] = InForce(("", ()))
_SITE = '''"""Of gatecert: gives this process its overlay, then makes way for your sitecustomize."""

import json
import os
import sys
import time

_here = os.path.dirname(os.path.abspath(__file__))


def _is_ours(folder):
    return os.path.abspath(folder or os.curdir) == _here


def _begin(asked):
    try:
        from gatecert.gates.command.site import start

        start(asked)
    except BaseException as error:
        said = {"pid": os.getpid(), "python": sys.executable, "blind": repr(error)}
        name = "%020d-%d-blind.json" % (time.time_ns(), os.getpid())
        with open(os.path.join(_here, "reports", name), "w") as report:
            json.dump(said, report)


def _make_way():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    sys.path[:] = [folder for folder in sys.path if not _is_ours(folder)]
    theirs = PathFinder.find_spec("sitecustomize")
    if theirs is not None and theirs.loader is not None:
        module = module_from_spec(theirs)
        sys.modules["sitecustomize"] = module
        theirs.loader.exec_module(module)


if os.environ.get("GATECERT_SITE"):
    _begin(os.environ["GATECERT_SITE"])
_make_way()
'''


class SiteRequest(msgspec.Struct, frozen=True):
    """What every Python process of the command is asked for.

    `files` are the overlay; `tree` and `roots` the placing of the private tree. With `interpret`
    kernels run in the interpreter lane, else they are compiled for the GPU. With `watch`
    evidence is collected about `kernels` and the subject's `entry`. Calls of the entry, and other
    launches of the kernels `captured`, are written to the folder `capture`, where there is one.
    """

    reports: str
    files: dict[str, str] = {}
    tree: str = ""
    roots: tuple[str, ...] = ()
    interpret: bool = True
    watch: bool = False
    kernels: tuple[str, ...] = ()
    entry: str = ""
    capture: str = ""
    captured: tuple[str, ...] = ()


@contextlib.contextmanager
def capturing(folder: str, kernels: Sequence[str]) -> Iterator[None]:
    """Every Python process of a command that is run inside writes the calls of the entry there, and
    launches of kernels that it makes by itself."""
    with _CAPTURE.set((folder, tuple(kernels))):
        yield


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, what it printed last (`stdout` and `stderr` apart), and what its
    Python processes saw. `status` is None where it was stopped at its time limit, and minus the
    signal where it died of one."""

    status: int | None
    stdout: str
    stderr: str
    seen: Elsewhere
    seconds: float
    pid: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command line with the folder it runs in; `environment` is added to this process's."""

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    import_paths: tuple[str, ...] = ()
    placing: Placing | None = None

    def run(
        self,
        files: Mapping[str, str],
        *,
        timeout_s: float | None,
        interpret: bool = True,
        watch: bool = False,
        kernels: Sequence[str] = (),
        entry: str = "",
        given: bytes = b"",
    ) -> Ran:
        """Run it to its end, with `given` to read on stdin; call this in a child, with which all
        that it starts is ended.

        Raises:
            OSError: it cannot be started.
        """
        request = SiteRequest(
            reports="",
            files=dict(files),
            tree=self.placing.tree if self.placing else "",
            roots=self.placing.roots if self.placing else (),
            interpret=interpret,
            watch=watch,
            kernels=tuple(kernels),
            entry=entry,
            capture=_CAPTURE.value[0],
            captured=_CAPTURE.value[1],
        )
        # What a process that it left behind still writes there is nobody's.
        with tempfile.TemporaryDirectory(
            prefix="gatecert-site-", ignore_cleanup_errors=True
        ) as folder:
            return self._run_at(Path(folder), request, timeout_s, given)

    def _run_at(
        self, site: Path, request: SiteRequest, timeout_s: float | None, given: bytes
    ) -> Ran:
        request = msgspec.structs.replace(request, reports=str(site / "reports"))
        (site / "reports").mkdir()
        (site / "request.json").write_bytes(msgspec.json.encode(request))
        (site / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
        started = time.monotonic()
        out, err = site / "stdout", site / "stderr"
        (site / "stdin").write_bytes(given)
        with (
            (site / "stdin").open("rb") as stdin,
            out.open("wb") as stdout,
            err.open("wb") as stderr,
        ):
            process = subprocess.Popen(
                self.argv,
                cwd=self.folder,
                env=self._environment_at(site, request.interpret),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                preexec_fn=die_with_parent,
            )
            status: int | None = None
            try:
                status = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return Ran(
            status=status,
            stdout=_tail(out),
            stderr=_tail(err),
            seen=read_reports(site / "reports", request.files),
            seconds=time.monotonic() - started,
            pid=process.pid,
        )

    def _environment_at(self, site: Path, interpret: bool) -> dict[str, str]:
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")]), *self.import_paths]
        environment = {
            **os.environ,
            **self.environment,
            VARIABLE: str(site / "request.json"),
            "PYTHONPATH": os.pathsep.join([*paths, *_home_of_gatecert()]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            # Else pytest and Hypothesis would pass something of one candidate on to the next.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(site / "hypothesis"),
            "COVERAGE_FILE": str(site / "coverage"),
            "TRITON_INTERPRET": "1",
        }
        if interpret:
            return environment
        del environment["TRITON_INTERPRET"]
        return with_gpus(environment)


def _home_of_gatecert() -> list[str]:
    """The folder that gatecert is imported from, unless every Python process looks there."""
    home = str(Path(gatecert.__file__).resolve().parents[1])
    return [] if home in map(sysconfig.get_path, ("purelib", "platlib")) else [home]


def _tail(path: Path) -> str:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _OUTPUT_BYTES))
        return stream.read().decode("utf-8", "replace")


def python_of(argv: Sequence[str]) -> tuple[str, ...]:
    """The command line; a leading `python` is the one that runs this."""
    return (sys.executable, *argv[1:]) if argv[0] == "python" else tuple(argv)
