"""Content keys: equal keys mean that nothing that can change the answer has changed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import gatecert
from gatecert.mutants.records import CandidateKind
from gatecert.results_folder import is_results
from gatecert.sandbox.protocol import ShardRequest, Task

_NEVER_IN_THE_SANDBOX = frozenset({"certificate", "cli", "corpus", "drafting", "reports", "store"})
"""Parts of gatecert that no judging or compiling process imports. The corpus is code under
test: its files are hashed by the subjects that import them."""
_NOT_CODE = frozenset({"__pycache__", "node_modules"})
_NOT_INPUT = frozenset({".html", ".log", ".md", ".pyc", ".rst", ".xml"})
"""What tests leave behind and people write; a change of it alone re-runs nothing."""
_OF_GATECERT = frozenset(
    {"gatecert-accepted.toml", "gatecert-ignore.toml", "gatecert-ratchet.json"}
)
"""What gatecert alone reads, and no gate."""
_OF_PYTEST = frozenset({"PYTEST_ADDOPTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_PLUGINS"})
_WITHOUT_EFFECT = frozenset(
    {
        *("PYTHONDONTWRITEBYTECODE", "PYTHONHISTORY", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME"),
        *("PYTHONPYCACHEPREFIX", "PYTHONSTARTUP", "PYTHONUNBUFFERED", "PYTHONVERBOSE"),
        *("PYTHON_BASIC_REPL", "PYTHON_COLORS", "PYTHON_HISTORY", "PYTHON_PERF_JIT_SUPPORT"),
    }
)
"""Variables of Python's that change what it prints and keeps, and nothing that code computes."""
_ELSEWHERE = frozenset(
    {"PYTHONEXECUTABLE", "PYTHONHASHSEED", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE"}
)
"""Places, which are of one machine, and the seed that gatecert sets itself."""
LARGE_BYTES = 4 << 20
"""Files above are not read anew each time."""


def verdict_key(request: ShardRequest, task: Task, fingerprint: str) -> str:
    """Hash of all that a task's verdict depends on. Time limits do not belong to it: a verdict
    that came in time is none of theirs, and one that did not is not kept."""
    return _hash(
        fingerprint,
        request.subject,
        next(ref for ref in request.gates if ref.name == task.gate),
        request.seed,
        request.quick,
        request.overlay,
        sorted(request.signatures),
        request.limits.memory_bytes,
        task.stop_at_first,
        task.observe,
        task.candidate.id,
        task.candidate.kind,
        task.candidate.files,
        *_selected_by(request, task),
    )


def _selected_by(request: ShardRequest, task: Task) -> tuple[Any, ...]:
    """What chooses the tests that judge the candidate. The original's verdict brings it."""
    baseline = request.baselines.get(task.gate)
    if baseline is None or task.candidate.kind is CandidateKind.ORIGINAL:
        return ()
    tests = [
        (
            *(test.nodeid, test.kernels, test.programs, test.launches),
            *(test.compares, test.leans, bool(test.reason)),
        )
        for test in baseline.tests
    ]
    return (tests, task.candidate.kernels)


def text_sha256(text: str) -> str:
    """Hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def content_key(*parts: Any) -> str:
    """Hash of any records."""
    return _hash(*parts)


def fingerprint(roots: Iterable[Path] = (), *, but: Path | None = None) -> str:
    """Hash of gatecert's own code, the installed libraries, and all files below `roots`.

    `roots`, folders or files, are for gates that may read anything there; hidden files, caches,
    logs and prose are left out, and so are folders of results: `but`, where they go, and those
    that hold a store. Of large files size and time of change stand for the content.
    """
    digest = hashlib.sha256()
    for part in (sys.version, platform.system(), platform.machine(), *_libraries(), *_switches()):
        digest.update(part.encode() + b"\0")
    package = Path(gatecert.__file__).parent
    for path in _files(package, set(_NEVER_IN_THE_SANDBOX), None):
        if path.suffix in {".py", ".toml"}:
            _add(digest, path, package)
    for root in roots:
        if root.is_file():
            _add(digest, root, Path(root.anchor))
        for path in project_files(root, but=but):
            _add(digest, path, root)
    return digest.hexdigest()


def code_sha256(*packages: str) -> str:
    """Hash of gatecert's own code and data, or of some of its packages only."""
    home = Path(gatecert.__file__).parent
    digest = hashlib.sha256()
    for root in [home / name for name in packages] or [home]:
        for path in _files(root, set() if packages else set(_NEVER_IN_THE_SANDBOX), None):
            if path.suffix in {".py", ".toml"}:
                _add(digest, path, home)
    return digest.hexdigest()


def project_files(root: Path, *, but: Path | None = None) -> Iterator[Path]:
    """Files below a folder that a gate may read, in a fixed order: no hidden ones, caches, logs or
    prose, nothing in the folder `but`, nor in one below `root` that holds results alone."""
    results: dict[Path, bool] = {}
    for path in _files(root, set(), but and but.resolve()):
        ours = path.name in _OF_GATECERT or _is_in_results(path, root, results)
        if path.suffix not in _NOT_INPUT and not ours:
            yield path


def _is_in_results(path: Path, root: Path, known: dict[Path, bool]) -> bool:
    for folder in path.parents:
        if root not in folder.parents:
            return False
        if folder not in known:
            known[folder] = is_results(folder)
        if known[folder]:
            return True
    return False


def _hash(*parts: Any) -> str:
    body = msgspec.msgpack.encode(parts, order="deterministic")
    return hashlib.sha256(body).hexdigest()


def _libraries() -> list[str]:
    """Every installed distribution but gatecert, whose code is hashed itself."""
    found = {
        f"{distribution.name}={distribution.version}"
        for distribution in importlib.metadata.distributions()
    }
    return sorted(name for name in found if not name.startswith("gatecert="))


def gate_switches() -> list[str]:
    """Variables of this process by which Python and pytest change what a gate does, those aside
    that are of one machine."""
    return sorted(
        name
        for name in os.environ
        if name in _OF_PYTEST or (_is_of_python(name) and name not in _ELSEWHERE)
    )


def _is_of_python(name: str) -> bool:
    return name.startswith("PYTHON") and name not in _WITHOUT_EFFECT


def _switches() -> list[str]:
    """Environment variables by which Python, Triton, torch, pytest and many suites change what
    they do; of Triton's and torch's no places."""
    return sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name == "CI"
        or name in _OF_PYTEST
        or _is_of_python(name)
        or (
            name.startswith(("TRITON_", "TORCH_")) and not name.endswith(("_DIR", "_PATH", "_HOME"))
        )
    )


def _files(root: Path, ignored: set[str], but: Path | None) -> Iterator[Path]:
    """Files below a folder in a fixed order. Links are followed: a checkout has its packages
    behind some."""
    seen = {root.resolve()}
    for folder, folders, names in os.walk(root, followlinks=True):
        here = Path(folder)
        top = here == root
        kept = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _NOT_CODE
            and not (top and name in ignored)
            and (here / name).resolve() != but
            and not (here / name / "pyvenv.cfg").exists()
        )
        # A link to a folder above would be walked for ever.
        folders[:] = [name for name in kept if (here / name).resolve() not in seen]
        seen.update((here / name).resolve() for name in folders)
        yield from (here / name for name in sorted(names) if not name.startswith("."))


def content_mark(path: Path) -> str:
    """A file's hash; of a large one size and time of change, and "" where there is none."""
    if not path.is_file():
        return ""
    status = path.stat()
    if status.st_size > LARGE_BYTES:
        return f"{status.st_size} {status.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _add(digest: Any, path: Path, root: Path) -> None:
    if path.is_file():
        digest.update(f"{path.relative_to(root)}\0{content_mark(path)}".encode())
