"""Claims about the private copy: it is complete, it is put right after whatever a gate does, and
nobody's own files are touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.errors import UsageError
from gatecert.sandbox import copy_plan
from gatecert.sandbox.child import ChildEnd, run_in_child
from gatecert.sandbox.placing import Placing, use_copies
from gatecert.sandbox.private_tree import PrivateTree, private_tree


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project inside a repository, with all that is copied, linked and left out."""
    repository = tmp_path / "repository"
    root = repository / "team"
    for folder in ("acme", "data", ".venv/bin", "__pycache__", "gatecert-out", "empty"):
        (root / folder).mkdir(parents=True)
    (repository / ".git").mkdir()
    (repository / "conftest.py").write_text("ABOVE = True\n")
    (repository / "shared").mkdir()
    (repository / "shared" / "table.txt").write_text("shared")
    (root / "acme" / "__init__.py").write_text("WHERE = __file__\n")
    (root / "data" / "large.bin").write_bytes(b"x" * 1000)
    (root / ".venv" / "pyvenv.cfg").write_text("")
    (root / "__pycache__" / "old.pyc").write_bytes(b"")
    (root / "gatecert-out" / "gatecert.sqlite").write_bytes(b"")
    (root / "run.sh").write_text("#!/bin/sh\nexit 0\n")
    (root / "run.sh").chmod(0o755)
    (root / "relative").symlink_to("acme/__init__.py")
    (root / "absolute").symlink_to(root / "acme")
    (root / "outward").symlink_to("../shared/table.txt")
    return root


def state(folder: Path) -> dict[str, tuple[int, bytes | str, int]]:
    """Mode, content and time of change of everything below."""
    found = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        content: bytes | str = ""
        if path.is_symlink():
            content = os.readlink(path)  # noqa: PTH115  (as it is written)
        elif path.is_file():
            content = path.read_bytes()
        found[str(path)] = (info.st_mode, content, info.st_mtime_ns)
    return found


def copy_of(tree: PrivateTree, path: Path) -> Path:
    """Where the copy of a path lies, whether or not it is there."""
    return Path(tree.placing.tree + str(path))


def test_the_copy_holds_what_the_project_holds(project: Path) -> None:
    with private_tree([str(project)]) as tree:
        copy = copy_of(tree, project)
        assert (copy / "run.sh").stat().st_mode == (project / "run.sh").stat().st_mode
        assert (copy / "acme" / "__init__.py").read_text() == "WHERE = __file__\n"
        assert (copy / "empty").is_dir()
        assert (copy / "relative").read_text() == "WHERE = __file__\n"
        assert (copy / "absolute").resolve() == copy / "acme"
        assert (copy / "outward").read_text() == "shared"


def test_environments_are_linked_and_caches_and_results_left_out(project: Path) -> None:
    with private_tree([str(project)]) as tree:
        copy = copy_of(tree, project)
        assert (copy / ".venv").resolve() == project / ".venv"
        assert not (copy / "__pycache__").exists()
        assert not (copy / "gatecert-out").exists()
        assert not (copy.parent / ".git").exists()


def test_what_lies_above_is_found_up_to_the_top_of_the_repository(project: Path) -> None:
    with private_tree([str(project)]) as tree:
        above = copy_of(tree, project).parent
        assert (above / "conftest.py").read_text() == "ABOVE = True\n"
        assert (above / "shared" / "table.txt").read_text() == "shared"
        assert not (above / "conftest.py").is_symlink()
        assert sorted(path.name for path in above.parent.iterdir()) == ["repository"]


def test_what_is_excluded_is_used_in_place(project: Path) -> None:
    with private_tree([str(project)], [str(project / "data")]) as tree:
        assert copy_of(tree, project / "data").resolve() == project / "data"
        assert tree.placing.place(str(project / "data" / "large.bin")) is None


def test_too_much_to_copy_is_a_usage_error_that_names_what_is_large(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_plan, "_LIMIT_BYTES", 500)
    with (
        pytest.raises(
            UsageError, match=r"holds more than .* data \(over .*exclude = \['.*team/data'\]"
        ),
        private_tree([str(project)]),
    ):
        pass


def test_whatever_a_gate_does_to_the_copy_is_undone_and_the_users_tree_stays(
    project: Path,
) -> None:
    before = state(project.parent)

    def work() -> bytes:
        os.chdir(copy_of(tree, project))
        Path("acme/__init__.py").write_text("changed\n")
        Path("run.sh").unlink()
        Path("new/deep").mkdir(parents=True)
        Path("new/deep/log.txt").write_text("new")
        Path("new").chmod(0o500)
        shutil.rmtree("data")
        Path("data").write_text("a file where a folder was")
        Path("relative").unlink()
        Path("../conftest.py").write_text("ABOVE = False\n")
        Path("empty").chmod(0o000)
        return b"done"

    with private_tree([str(project)]) as tree:
        pristine = state(Path(tree.placing.tree))
        assert run_in_child(work, timeout_s=20).end is ChildEnd.ANSWERED
        after = state(Path(tree.placing.tree))
        assert {p: s[:2] for p, s in after.items()} == {p: s[:2] for p, s in pristine.items()}
        files = [p for p in after if Path(p).is_file() and not Path(p).is_symlink()]
        assert [after[path] for path in files] == [pristine[path] for path in files]
        (note,) = tree.notes()
        assert f"{project.parent}/conftest.py, {project}/acme/__init__.py" in note
        assert "and 7 more" in note
    assert state(project.parent) == before


def test_a_gate_that_cleans_up_after_itself_changes_nothing(project: Path) -> None:
    def work() -> bytes:
        note = copy_of(tree, project / "note.txt")
        note.write_text("soon gone")
        note.unlink()
        copy_of(tree, project / ".pytest_cache").mkdir()
        return b"done"

    with private_tree([str(project)]) as tree:
        run_in_child(work, timeout_s=20)
        assert tree.notes() == ()
        assert not copy_of(tree, project / ".pytest_cache").exists()


def test_temporary_files_of_one_child_are_gone_before_the_next(project: Path) -> None:
    code = "import tempfile; print(tempfile.mkstemp()[1], flush=True)"

    def work() -> bytes:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout

    with private_tree([str(project)]) as tree:
        result = run_in_child(work, timeout_s=20)
        path = Path(result.answer.decode().strip())
        assert path.is_relative_to(tree.scratch)
        assert not path.exists()


def test_the_copy_is_gone_at_the_end(project: Path) -> None:
    with private_tree([str(project)]) as tree:
        folder = Path(tree.placing.tree)
        assert folder.is_dir()
    assert not folder.exists()


def test_an_argument_that_names_a_path_is_moved_and_others_are_not(project: Path) -> None:
    with private_tree([str(project)]) as tree:
        moved = tree.placing.place_argument
        top = tree.placing.tree
        for text in (
            f"{project}/run.sh",
            f"--junitxml={project}/not_there_yet.xml",
            f"{project}/acme/__init__.py::test_it[a=/b]",
            f"/usr/bin:{project}/acme",
        ):
            assert moved(text) == text.replace(str(project), f"{top}{project}")
        for text in ("-k a=b", "tests/test_x.py", "/usr/bin", f"{project}/.venv/bin", "--x=1"):
            assert moved(text) == text


def test_what_an_editable_installs_finder_finds_is_found_in_the_copy(project: Path) -> None:
    class Editable:
        """As setuptools installs it: a finder that knows one package by its folder."""

        def find_spec(self, name: str, path: object = None, target: object = None) -> object:
            from importlib.util import spec_from_file_location

            if name != "acme":
                return None
            home = project / "acme" / "__init__.py"
            return spec_from_file_location(
                name, home, submodule_search_locations=[str(home.parent)]
            )

    def work() -> bytes:
        sys.meta_path.append(Editable())  # type: ignore[arg-type]
        use_copies(placing)
        import acme

        return f"{acme.WHERE} {acme.__path__[0]}".encode()

    with private_tree([str(project)]) as tree:
        placing: Placing = tree.placing
        folder = copy_of(tree, project / "acme")
        said = run_in_child(work, timeout_s=20).answer.decode().split()
        assert said == [f"{folder}/__init__.py", str(folder)]


def test_messages_name_the_users_own_paths(project: Path) -> None:
    with private_tree([str(project)]) as tree:
        text = f"E {copy_of(tree, project / 'run.sh')}:3: AssertionError"
        assert tree.placing.unplace(text) == f"E {project}/run.sh:3: AssertionError"
