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
        (CASE.replace("leaky_relu", "leaky_rleu"), "did you mean 'leaky_relu'?"),
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


LEAKY = '[subject.leaky]\noperation = "leaky_relu"\nentry = "acme:leaky"\n'


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (
            CASE.replace("contiguous", "spread"),
            "subject 'leaky' declares no layout spread (layouts = row_padded)",
        ),
        (
            CASE.replace("float32", "bfloat16").replace("contiguous", "sliced:x"),
            "subject 'leaky' declares no dtype bfloat16 (dtypes = float32) and no layout sliced "
            "(layouts = row_padded)",
        ),
    ],
)
@pytest.mark.parametrize("only", [(), ("--only", "leaky/k/drop-load-mask/1-aaaaaa")])
def test_a_case_outside_the_contract_is_refused_with_what_is_declared(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], case: str, says: str, only: tuple[str, ...]
) -> None:
    (elsewhere / "gatecert.toml").write_text(f'{LEAKY}layouts = ["row_padded"]\n')
    assert main(["replay", case, *only]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[-1] == f"gatecert: case {case!r}: {says}"


def test_a_subject_that_does_not_declare_the_case_is_left_out_and_said_so(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "acme.py").write_text(
        "import torch\n\n\ndef leaky(x, slope):\n    return torch.where(x > 0, x, x * slope)\n"
    )
    wide = LEAKY.replace("[subject.leaky]", "[subject.wide]") + 'layouts = ["sliced"]\n'
    (elsewhere / "gatecert.toml").write_text(LEAKY + wide)
    assert main(["replay", CASE.replace("contiguous", "sliced")]) == ExitCode.MET
    out, err = capsys.readouterr()
    assert out.startswith("wide/original: accepted")
    assert "left out: subject 'leaky' declares no layout sliced (layouts = contiguous)" in err


def test_a_kernel_that_only_asserts_is_quoted_with_the_place(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "acme.py").write_text("def leaky(x, slope):\n    assert x.shape[0] > 9\n")
    (elsewhere / "gatecert.toml").write_text(LEAKY)
    assert main(["replay", CASE]) == ExitCode.ENVIRONMENT_FAILED
    assert "AssertionError without a message, in leaky at acme.py:2" in capsys.readouterr().out


def test_a_missing_module_is_the_environments_failure(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "gatecert.toml").write_text(
        '[subject.leaky]\noperation = "leaky_relu"\nentry = "nowhere:leaky"\n'
    )
    assert main(["replay", CASE]) == ExitCode.ENVIRONMENT_FAILED
    assert "nowhere" in capsys.readouterr().out
