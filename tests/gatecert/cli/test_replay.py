"""`replay` runs one case from its description, in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatecert.cli import main
from gatecert.errors import ExitCode

CASE = "leaky_relu/float32/B=3,N=5/contiguous/normal/slope=0.5/seed=0"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_case_gives_the_same_inputs_and_verdict_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = []
    for _ in range(2):
        assert main(["replay", CASE, "--json"]) == ExitCode.MET
        (answer,) = json.loads(capsys.readouterr().out)
        answers.append((answer["inputs_sha256"], answer["verdict"]["bits"]))
        assert answer["verdict"]["outcome"] == "accepted"
    assert answers[0] == answers[1]
    assert len(answers[0][0]) == 64


def test_a_wrong_kernel_is_a_rejected_control(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "acme.py").write_text("def leaky(x, slope):\n    return x * slope\n")
    (elsewhere / "gatecert.toml").write_text(
        '[subject.leaky]\noperation = "leaky_relu"\nentry = "acme:leaky"\n'
    )
    assert main(["replay", CASE]) == ExitCode.CONTROL_REJECTED
    out = capsys.readouterr().out
    assert out.startswith("leaky/original: rejected values")
    assert "inputs: sha256" in out


@pytest.mark.parametrize(
    ("case", "hint"),
    [
        ("softmax", "not of the form"),
        (CASE.replace("leaky_relu", "conv"), "no subject here has the operation 'conv'"),
        (CASE.replace("N=5", "Q=5"), "N"),
    ],
)
def test_a_case_that_is_none_is_one_clear_line(
    case: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", case]) == ExitCode.USAGE
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("gatecert: ")
    assert hint in last


def test_a_missing_module_is_the_environments_failure(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "gatecert.toml").write_text(
        '[subject.leaky]\noperation = "leaky_relu"\nentry = "nowhere:leaky"\n'
    )
    assert main(["replay", CASE]) == ExitCode.ENVIRONMENT_FAILED
    assert "nowhere" in capsys.readouterr().out
