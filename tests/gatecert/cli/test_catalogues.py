"""What is built in can be listed, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatecert.cli import main
from gatecert.errors import ExitCode


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "name"),
    [("operators", "drop-load-mask"), ("operations", "softmax"), ("gates", "allclose-one-shape")],
)
def test_a_catalogue_lists_the_same_names_as_text_and_as_json(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--json"]) == 0
    names = [entry["name"] for entry in json.loads(capsys.readouterr().out)]
    assert name in names
    assert main([command]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    # A row that goes on in the next line has no name there.
    assert [row.split()[0] for row in rows if not row.startswith(" ")] == names


def test_the_gates_of_the_configuration_are_listed_too(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "gatecert.toml").write_text(
        '[subject.a]\nentry = "a:b"\n[gate.tests]\nkind = "pytest"\nargs = ["tests", "-q"]\n'
    )
    assert main(["gates"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split() == ["tests", "pytest", "tests", "-q"]


def test_an_operator_is_explained_with_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operators", "--explain", "drop-load-mask"]) == 0
    out = capsys.readouterr().out
    assert "Seen in:" in out
    assert "Plants in" in out
    assert main(["operators", "--explain", "drop-lode-mask"]) == ExitCode.USAGE
    assert "drop-load-mask" in capsys.readouterr().err


def test_a_name_without_its_option_is_answered_with_the_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["operators", "drop-load-mask"]) == ExitCode.USAGE
    assert "--explain drop-load-mask" in capsys.readouterr().err


def test_the_help_of_a_group_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    main(["mutants"])
    said = capsys.readouterr()
    assert "Usage: gatecert mutants [OPTIONS]" in said.out + said.err
    assert len((said.out + said.err).splitlines()) > 5
