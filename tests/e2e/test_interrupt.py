"""Claims about Ctrl-C and SIGTERM: verdicts are kept, processes are not, runs go on later."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gatecert.errors import INTERRUPTED, TERMINATED, EnvironmentFailure
from gatecert.store import Scope, open_runs, recording
from gatecert.store.records import RunState
from tests.e2e.commands import LIMIT_S, environment, gatecert, project
from tests.signals import heed_interrupts

MARK = "GATECERT_TEST_MARK"


@pytest.mark.parametrize(
    ("jobs", "signals", "status"),
    [
        (2, (signal.SIGTERM,), TERMINATED),
        (1, (signal.SIGINT, signal.SIGINT), INTERRUPTED),
        (1, (signal.SIGINT, signal.SIGTERM), INTERRUPTED),
    ],
)
def test_signals_keep_verdicts_and_leave_no_process_and_no_file(
    tmp_path: Path, jobs: int, signals: Sequence[signal.Signals], status: int
) -> None:
    _stop(tmp_path, jobs, signals, status)


def test_after_ctrl_c_the_same_command_goes_on(tmp_path: Path) -> None:
    folder, partial = _stop(tmp_path, 1, (signal.SIGINT,), INTERRUPTED)
    again = gatecert(folder, "certify", "--jobs", "1", "--out", "out")
    assert again.returncode == 0, again.stderr
    assert "going on with an interrupted run" in again.stderr
    certificate = json.loads((folder / "out" / "certificate.json").read_text())
    assert not certificate["interrupted"]
    assert certificate["mutants"]["inconclusive"] == 0
    assert not partial.exists()


def _stop(
    tmp_path: Path, jobs: int, signals: Sequence[signal.Signals], status: int
) -> tuple[Path, Path]:
    """Send signals to a run that has some verdicts, and see how it ends; the project's folder and
    the partial certificate."""
    folder = project(tmp_path / "project", "kernels_softmax:softmax")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "gatecert", "certify", "--jobs", str(jobs), "--out", "out"]
    run = subprocess.Popen(
        command,
        cwd=folder,
        env={**environment(), MARK: mark, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    _wait(lambda: run.poll() is not None or _count(folder / "out" / "gatecert.sqlite") >= 5)
    assert run.poll() is None, run.communicate()[1]
    assert _marked(mark)
    with (
        pytest.raises(EnvironmentFailure, match=rf"process {run.pid} \(`gatecert certify --gate"),
        recording(folder / "out", Scope("certify")),
    ):
        pass
    with open_runs(folder / "out") as runs:
        assert [info.state for info in runs.all()] == [RunState.RUNNING]
    for number in signals:
        os.kill(run.pid, number)
        time.sleep(0.05)
    _, stderr = run.communicate(timeout=LIMIT_S)
    assert "Traceback" not in stderr
    assert stderr.count("gatecert: interrupted: ") == 1
    assert run.returncode == status
    _wait(lambda: not _marked(mark))
    assert list(temporary.iterdir()) == []
    with open_runs(folder / "out") as runs:
        (info,) = runs.all()
    assert info.state is RunState.UNFINISHED
    assert info.verdicts >= 5
    partial = folder / "out" / f"certificate-{info.id}.json"
    stopped = json.loads(partial.read_text())
    assert stopped["interrupted"] and stopped["inconclusive"] == []
    assert not (folder / "out" / "certificate.json").exists()
    return folder, partial


def _count(database: Path) -> int:
    """Verdicts in the record of a run that is still writing it."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM verdict").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def _marked(mark: str) -> list[int]:
    """Processes, zombies aside, that inherited the mark of this run."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environ = (folder / "environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environ:
            found.append(int(folder.name))
    return found
