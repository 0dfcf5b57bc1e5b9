"""`replay --minimise`: the kernel runs at every step, and the reason stays the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gatecert.cli import main
from gatecert.cli.minimise_child import failure_of
from gatecert.errors import ExitCode
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.lanes.records import Finding, FindingKind
from gatecert.oracle.case import parse_case
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation

START = "softmax/float16/B=2,N=20/row_padded/rising/seed=5"

RIGHT = """
import time
import torch

def softmax(x):
    return torch.softmax(x.float(), -1).to(x.dtype)
"""
WRONG_FROM_17 = """
import torch

def softmax(x):
    y = torch.softmax(x.float(), -1)
    if x.shape[1] > 16 and (x[:, 16] > 0).any():
        y = y * 1.5
    return y.to(x.dtype)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acme.py").write_text(RIGHT)
    (tmp_path / "gatecert.toml").write_text(
        '[subject.mine]\noperation = "softmax"\nentry = "acme:softmax"\n'
        'dtypes = ["float32", "float16"]\nlayouts = ["contiguous", "row_padded"]\n'
    )
    return tmp_path


def minimised(
    capsys: pytest.CaptureFixture[str], text: str, *more: str, start: str = START
) -> dict[str, Any]:
    Path("other.py").write_text(text)
    assert main(["replay", start, "--file", "other.py", "--minimise", "--json", *more]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_case_shrinks_to_the_one_value_that_matters_and_fails_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = minimised(capsys, WRONG_FROM_17)
    assert found["case"] == "softmax/float32/B=1,N=17/contiguous/normal:x=16x0,1/seed=0"
    assert found["kept"] == "values"
    assert found["complete"] is True
    assert found["untried"] == {}

    again = ["replay", found["case"], "--file", "other.py"]
    inputs, bits = found["answer"]["inputs_sha256"], found["answer"]["verdict"]["bits"]
    assert main([*again, "--expect-inputs", inputs, "--expect-bits", bits]) == 0
    assert "rejected values" in capsys.readouterr().out
    assert main([*again, "--expect-inputs", "0" * 64]) == ExitCode.ENVIRONMENT_FAILED
    assert "the inputs are not those expected" in capsys.readouterr().err
    assert main([*again, "--expect-bits", "0" * 64]) == ExitCode.REQUIREMENT_NOT_MET


def test_another_failure_on_the_way_is_not_taken(capsys: pytest.CaptureFixture[str]) -> None:
    raises = '    if len(x) < 2: raise ValueError("x")\n'
    text = WRONG_FROM_17.replace("    y = torch", f"{raises}    y = torch", 1)
    found = minimised(capsys, text)
    assert "B=2,N=17" in found["case"]
    assert found["kept"] == "values"
    raised = minimised(capsys, text, start=START.replace("B=2", "B=1"))
    assert raised["case"] == "softmax/float32/B=1,N=1/contiguous/normal:x=0/seed=0"
    assert raised["kept"] == "raised (ValueError)"


def test_a_case_on_which_the_original_fails_too_is_no_simpler_case(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bug = "    if x.shape[1] < 9: return x * 0\n"
    (project / "acme.py").write_text(RIGHT.replace("    return", bug + "    return", 1))
    found = minimised(capsys, RIGHT.replace("    return", "    return 2 * ", 1))
    assert "B=1,N=9/" in found["case"]


def test_a_death_and_a_hang_are_kept_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    dies = RIGHT.replace("    return", "    if x.shape[1] > 4: import os; os.abort()\n    return")
    found = minimised(capsys, dies)
    assert (found["kept"], found["case"].split("/")[2]) == ("died of signal 6", "B=1,N=5")


def test_the_budget_ends_the_search_with_the_best_so_far(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = minimised(capsys, WRONG_FROM_17, "--budget", "20")
    assert found["runs"] == 20
    assert found["complete"] is False
    assert found["case"] != START


def test_values_that_no_line_can_hold_become_a_snapshot(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The number of signs counts, and no value may be zero.
    text = """
import torch

def softmax(x):
    y = torch.softmax(x.float(), -1)
    wrong = tuple(x.shape) == (1, 1500) and (x != 0).all() and (x < 0).sum() == COUNT
    return (y * 2 if wrong else y).to(x.dtype)
"""
    case = "softmax/float32/B=1,N=1500/contiguous/normal/seed=0"
    (x,) = make_inputs(get_operation("softmax"), parse_case(case)).args
    text = text.replace("COUNT", str(int((x < 0).sum())))
    found = minimised(capsys, text, "--budget", "110", start=case)
    assert found["snapshot"].endswith(".safetensors")
    replayed = ["replay", "--snapshot", found["snapshot"], "--file", "other.py", "--json"]
    assert main([*replayed, "--expect-inputs", found["answer"]["inputs_sha256"]]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["verdict"]["reason"] == "values"


def test_a_snapshot_may_be_shrunk_further(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.py").write_text(WRONG_FROM_17)
    case = "softmax/float32/B=1,N=20/contiguous/rising/seed=5"
    assert main(["replay", case, "--file", "other.py", "--save", "kept.safetensors"]) == 0
    capsys.readouterr()
    more = ["--snapshot", "kept.safetensors", "--file", "other.py", "--minimise", "--json"]
    assert main(["replay", *more]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["case"] == "softmax/float32/B=1,N=20/contiguous/normal:x=16x0,1,3x0/seed=0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([START, "--minimise"], "nothing to shrink"),
        ([START, "--file", "missing.py"], "--file: missing.py"),
        ([], "either a CASE or --snapshot"),
        ([START, "--snapshot", "x"], "either a CASE or --snapshot"),
        (["--snapshot", "gatecert.toml"], "not a snapshot"),
        ([START, "--minimise", "--budget", "soon"], "write a time as in"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *arguments]) == ExitCode.USAGE
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_an_interrupt_gives_the_best_so_far(project: Path) -> None:
    Path("other.py").write_text(WRONG_FROM_17)
    command = [sys.executable, "-m", "gatecert", "replay", START, "--file", "other.py"]
    process = subprocess.Popen(
        [*command, "--minimise", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "run 0:" in line:
            break
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 20
    assert "this is the simplest case so far" in err
    assert json.loads(out)["complete"] is False
    assert process.returncode == 0


def _rejected(reason: Reason, detail: str) -> Verdict:
    found = Finding(FindingKind.LOAD_OUT_OF_BOUNDS, "acme:kernel", "x_ptr", 3, 9)
    return Verdict("m", "oracle", GateOutcome.REJECTED, reason, detail, findings=(found,))


@pytest.mark.parametrize(
    ("verdict", "failure"),
    [
        (_rejected(Reason.VALUES, "3 of 9 elements of y are wrong"), "values"),
        (
            _rejected(Reason.VALUES, "with programs reversed: 3 of 9 elements of y are wrong"),
            "values, with programs in another order",
        ),
        (
            _rejected(Reason.RAISED, "under autotune configuration 2: ValueError: no"),
            "raised (ValueError)",
        ),
        (_rejected(Reason.BOUNDS, "load"), "bounds (load_out_of_bounds on x_ptr of kernel)"),
        (
            Verdict("m", "oracle", GateOutcome.ERROR, detail=f"{START}: TypeError: no"),
            "no verdict (TypeError)",
        ),
        (Verdict("m", "oracle", GateOutcome.ACCEPTED), ""),
    ],
)
def test_failures_of_one_cause_have_one_name(verdict: Verdict, failure: str) -> None:
    assert failure_of(verdict) == failure
