"""Only what gatecert wrote is hidden from gates, and it writes among no files of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.cli import main
from gatecert.errors import ExitCode
from gatecert.results_folder import is_results, strangers
from gatecert.sandbox.private_tree import private_tree
from gatecert.store.keys import project_files
from gatecert.store.lock import owned


def results(folder: Path, *more: str) -> Path:
    """A folder as runs leave it, and more files in it."""
    (folder / "codes" / "ab").mkdir(parents=True)
    for name in ("gatecert.sqlite", ".gatecert.lock", "certificate-r2.json", "report.md", *more):
        (folder / name).write_text("")
    return folder


def test_results_may_have_others_beside_them_but_no_code(tmp_path: Path) -> None:
    assert is_results(results(tmp_path / "out", "junit.xml"))
    assert strangers(results(tmp_path / "tests", "test_rms.py")) == ["test_rms.py"]
    assert not is_results(tmp_path / "tests")


def test_a_stale_lock_hides_no_test_from_a_gate(tmp_path: Path) -> None:
    tests = tmp_path / "project" / "tests"
    results(tests, "test_rms.py")
    (tests / "gatecert.sqlite").unlink()
    assert tests / "test_rms.py" in project_files(tmp_path / "project")
    with private_tree([str(tmp_path / "project")]) as tree:
        assert Path(tree.placing.tree + str(tests / "test_rms.py")).is_file()


def test_a_folder_of_the_users_files_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_rms.py").write_text("")
    (tmp_path / "conftest.py").write_text("")
    assert main(["certify", "--out", str(tmp_path)]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "holds what is not gatecert's (conftest.py and 1 more)" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conftest.py", "test_rms.py"]


def test_a_new_folder_is_ignored_by_git_and_an_old_one_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for name in ("old", "new"):
        with owned(tmp_path / name, "certify"):
            pass
    assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"
    assert not (tmp_path / "old" / ".gitignore").exists()
