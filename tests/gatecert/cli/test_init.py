"""`init` writes once, prints on request, and says what to run next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatecert.cli import main
from gatecert.errors import ExitCode
from tests.gatecert.drafting import repositories


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return repositories.flat(tmp_path)


def test_it_writes_a_configuration_and_says_what_to_run(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == ExitCode.MET
    assert "[subject.softmax]" in (repository / "gatecert.toml").read_text()
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "Next: gatecert certify --gate tests"


def test_a_configuration_that_is_there_stays(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "gatecert.toml").write_text("# mine\n")
    assert main(["init"]) == ExitCode.USAGE
    assert "--force" in capsys.readouterr().err
    assert main(["init", "--dry-run"]) == ExitCode.MET
    assert (repository / "gatecert.toml").read_text() == "# mine\n"
    assert "[subject.softmax]" in capsys.readouterr().out
    assert main(["init", "--force"]) == ExitCode.MET
    assert "[subject.softmax]" in (repository / "gatecert.toml").read_text()


def test_one_in_pyproject_stays_too(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "pyproject.toml").write_text('[tool.gatecert.subject.a]\nentry = "a:b"\n')
    assert main(["init"]) == ExitCode.USAGE
    assert "pyproject.toml" in capsys.readouterr().err
    assert not (repository / "gatecert.toml").exists()


def test_json_is_one_document_with_everything(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--json", "--dry-run"]) == ExitCode.MET
    found = json.loads(capsys.readouterr().out)
    assert not found["written"]
    assert found["subjects"][0]["entry"] == "acme.kernels:softmax"
    assert found["next"] == "gatecert certify --gate tests"
    assert not (repository / "gatecert.toml").exists()


def test_another_folder_is_named_in_the_next_command(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.parent)
    assert main(["init", repository.name]) == ExitCode.MET
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(f"--config {repository.name}/gatecert.toml")


def test_nothing_found_is_exit_code_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n")
    assert main(["init", str(tmp_path)]) == ExitCode.NOTHING_SCORED
    assert "no @triton.jit function" in capsys.readouterr().err
    assert main(["init", str(tmp_path / "absent")]) == ExitCode.USAGE


def test_the_schema_is_printed_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--schema"]) == ExitCode.MET
    assert json.loads(capsys.readouterr().out)["$defs"]["SubjectTable"]
