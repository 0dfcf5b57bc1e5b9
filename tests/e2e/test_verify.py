"""`verify` says of a real tree whether a certificate still holds, and what has changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gatecert.errors import ExitCode
from tests.e2e.commands import ROOT, TESTED_SOFTMAX, gatecert
from tests.gatecert.drafting import repositories


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the certificate of a run of its tests."""
    folder = repositories.flat(tmp_path_factory.mktemp("project"))
    (folder / "gatecert.toml").write_text(TESTED_SOFTMAX)
    done = gatecert(
        folder,
        *("certify", "--gate", "tests", "--quick", "--jobs", "1"),
        *("--operator", "wrong-pad-value"),
    )
    assert done.returncode == ExitCode.MET, done.stderr
    (path,) = (folder / "gatecert-out").glob("certificate*.json")
    path.rename(path.with_name("certificate.json"))
    return folder


@pytest.fixture
def project(certified: Path, tmp_path: Path) -> Path:
    """A copy elsewhere: a certificate is not bound to a place."""
    return Path(shutil.copytree(certified, tmp_path / "copy"))


def verify(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    done = gatecert(folder, "verify", *arguments, "--json")
    assert done.returncode in (0, 2), done.stderr
    document = json.loads(done.stdout)
    assert document["holds"] is (done.returncode == 0)
    return done.returncode, [change["name"] for change in document["changes"]]


def test_it_holds_for_the_tree_it_was_made_of_and_a_copy(certified: Path, project: Path) -> None:
    for folder in (certified, project):
        assert verify(folder, "gatecert-out") == (ExitCode.MET, [])


def test_it_holds_no_path_of_the_machine(certified: Path) -> None:
    text = (certified / "gatecert-out" / "certificate.json").read_text()
    assert str(certified) not in text
    assert str(ROOT) not in text


def test_edits_are_named_and_the_tree_is_read_only(project: Path) -> None:
    kernels, test = project / "acme/kernels.py", project / "tests/test_softmax.py"
    kernels.write_text(kernels.read_text().replace("tl.max(x, axis=0)", "tl.max(x, 0)"))
    test.write_text(test.read_text().replace("21", "22"))
    (project / "acme/__init__.py").write_text("raise SystemExit('imported')\n")
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    code, names = verify(project, "gatecert-out/certificate.json")
    assert code == ExitCode.REQUIREMENT_NOT_MET
    assert names == [
        "kernel row_kernel in acme/kernels.py changed",
        "acme/__init__.py changed",
        "gate tests: tests/test_softmax.py changed",
    ]
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_a_certificate_from_elsewhere_finds_the_configuration_here(
    project: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "artifact.json"
    shutil.move(project / "gatecert-out/certificate.json", moved)
    assert verify(project, str(moved)) == (ExitCode.MET, [])
    done = gatecert(tmp_path, "verify", str(moved))
    assert done.returncode == ExitCode.USAGE
    assert "name it with --config" in done.stderr
    named = ("--config", str(project / "gatecert.toml"))
    assert verify(tmp_path, str(moved), *named) == (ExitCode.MET, [])


def test_an_edited_figure_is_noticed(project: Path) -> None:
    path = project / "gatecert-out/certificate.json"
    document = json.loads(path.read_text())
    document["kill_rate"]["value"] = 1.0
    path.write_text(json.dumps(document | {"unmet": ["x"]}))
    code, names = verify(project, "gatecert-out")
    assert code == ExitCode.REQUIREMENT_NOT_MET
    assert names == ["the certificate's content does not match its own hash: it was edited or cut"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"gate": "x"}', "\x00"])
def test_what_is_no_certificate_is_exit_code_1(project: Path, text: str) -> None:
    (project / "other.json").write_text(text)
    done = gatecert(project, "verify", "other.json")
    assert done.returncode == ExitCode.USAGE
    assert "not a certificate" in done.stderr


def test_what_was_not_tested_is_listed(project: Path) -> None:
    done = gatecert(project, "verify", "gatecert-out")
    assert done.stdout.startswith("certificate of gate tests on softmax; lane interpreter, seed 0")
    assert "holds: nothing that it rests on has changed" in done.stdout
