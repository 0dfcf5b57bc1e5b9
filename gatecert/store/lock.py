"""One writer at a time: a lock that the operating system gives back however its owner ends.

The owner's temporary files lie in one folder that the lock file names. A killed owner leaves
it behind, and the next one removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from gatecert.errors import EnvironmentFailure, UsageError

LOCK = ".gatecert.lock"
_SCRATCH_PREFIX = "gatecert-run-"


class Owner(msgspec.Struct, frozen=True):
    """Who holds the lock."""

    pid: int
    command: str
    started: str
    scratch: str


@contextlib.contextmanager
def owned(folder: Path, command: str) -> Iterator[None]:
    """Own a folder of results for the duration of the block; temporary files go to a scratch.

    Raises:
        EnvironmentFailure: another process owns it.
        UsageError: the folder cannot be written.
    """
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            # Results are no sources: a repository should not offer them to be committed.
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; choose another --out") from None
    try:
        _take(descriptor, folder)
        _remove_scratch_of(_read(descriptor))
        scratch = Path(tempfile.gettempdir()) / f"{_SCRATCH_PREFIX}{os.urandom(6).hex()}"
        # Named before it is made: a kill in between leaves a name, not a folder.
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        _write(descriptor, msgspec.json.encode(Owner(os.getpid(), command, now, str(scratch))))
        scratch.mkdir(mode=0o700)
        try:
            with _temporary_files_in(scratch):
                yield
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            _write(descriptor, b"")
    finally:
        os.close(descriptor)


def owner_of(folder: Path) -> Owner | None:
    """The process that owns the folder now, if any."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _read(descriptor)
    finally:
        os.close(descriptor)
    return None


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _read(descriptor)
        who = "another process" if owner is None else f"process {owner.pid}"
        what = "" if owner is None else f" (`gatecert {owner.command}`, since {owner.started})"
        stop = "" if owner is None else f", stop it with `kill -INT {owner.pid}`"
        raise EnvironmentFailure(
            f"{folder}: {who}{what} is writing here; wait for it{stop}, or choose another --out"
        ) from None
    except OSError as error:
        raise EnvironmentFailure(
            f"{folder}: cannot be locked ({error.strerror}); choose an --out on another disk"
        ) from None


def _read(descriptor: int) -> Owner | None:
    body = os.pread(descriptor, 1 << 16, 0)
    try:
        return msgspec.json.decode(body, type=Owner)
    except msgspec.DecodeError:
        return None


def _write(descriptor: int, body: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, body, 0)


def _remove_scratch_of(owner: Owner | None) -> None:
    """Whoever holds the lock knows that the one it names is gone."""
    if owner is not None:
        scratch = Path(owner.scratch)
        if scratch.name.startswith(_SCRATCH_PREFIX):
            shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """This process and all that it starts put temporary files there."""
    before, known = os.environ.get("TMPDIR"), tempfile.tempdir
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = known
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before
