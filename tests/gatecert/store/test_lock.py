"""Claims about the lock: one writer, gone with its process, and nothing left of a dead one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gatecert.errors import EnvironmentFailure, ExitCode, UsageError
from gatecert.store.lock import LOCK, owned, owner_of
from tests.e2e.commands import environment

HOLD = """
import sys, tempfile, time
from pathlib import Path
from gatecert.store.lock import owned
with owned(Path(sys.argv[1]), "certify --seed 7"):
    Path(tempfile.mkdtemp(), "left").write_text("x")
    print(tempfile.gettempdir(), flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """A process that owns the folder `out`, with a file in its scratch folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()
    with owned(tmp_path / "out", "sweep"):
        pass


def scratch_of(holder: subprocess.Popen[str]) -> Path:
    assert holder.stdout is not None
    return Path(holder.stdout.readline().strip())


def test_a_second_writer_is_refused_with_the_first_ones_process_and_what_to_do(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    scratch_of(holder)
    with pytest.raises(EnvironmentFailure) as refused, owned(tmp_path / "out", "certify"):
        pass
    assert refused.value.exit_code is ExitCode.ENVIRONMENT_FAILED
    said = str(refused.value)
    assert f"process {holder.pid} (`gatecert certify --seed 7`, since " in said
    assert f"kill -INT {holder.pid}" in said
    assert "choose another --out" in said
    owner = owner_of(tmp_path / "out")
    assert owner is not None and owner.pid == holder.pid


def test_kill_nine_gives_the_lock_back_and_the_next_owner_sweeps(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    scratch = scratch_of(holder)
    assert any(scratch.rglob("left"))
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert owner_of(tmp_path / "out") is None
    with owned(tmp_path / "out", "certify"):
        assert not scratch.exists()
        mine = Path(tempfile.gettempdir())
        assert mine != scratch and mine.is_dir()
    assert not mine.exists()


def test_within_one_process_a_second_owner_is_refused_too(tmp_path: Path) -> None:
    with owned(tmp_path, "certify"), pytest.raises(EnvironmentFailure), owned(tmp_path, "merge"):
        pass
    with owned(tmp_path, "merge"):
        pass


def test_temporary_files_are_elsewhere_again_after_the_block(tmp_path: Path) -> None:
    before = (tempfile.gettempdir(), os.environ.get("TMPDIR"))
    with owned(tmp_path, "certify"):
        assert os.environ["TMPDIR"] == tempfile.gettempdir() != before[0]
    assert (tempfile.gettempdir(), os.environ.get("TMPDIR")) == before


def test_only_a_folder_of_ours_is_swept(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / LOCK).write_text(
        f'{{"pid":1,"command":"certify","started":"","scratch":"{precious}"}}'
    )
    with owned(tmp_path, "certify"):
        assert precious.is_dir()


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another --out"), owned(tmp_path / "file", "x"):
        pass
