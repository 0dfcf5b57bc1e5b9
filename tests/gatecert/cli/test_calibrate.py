"""`calibrate` prints what it fitted, and exits by how that held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.calibration.records import LeftOut, Refused, Tolerances, Tried, read_tolerances
from gatecert.calibration.run import Wanted
from gatecert.campaign.plan import Plan
from gatecert.cli import main
from gatecert.cli.calibrate import exit_code, tolerances_table
from gatecert.errors import ExitCode
from tests.gatecert.calibration.test_records import FOUND, ROW

REJECTING = msgspec.structs.replace(ROW, held_out={"seeds": Tried(40, 2, 2, 1, 0.9874)})
LEFT_OUT = msgspec.structs.replace(ROW, left_out=(LeftOut("softmax_online", 8.0, 90, 3),))


def found(*rows: Any) -> Tolerances:
    return msgspec.structs.replace(FOUND, row=rows)


def test_a_fit_that_rejects_what_it_did_not_see_exits_with_three() -> None:
    assert exit_code(found(ROW)) == ExitCode.MET
    assert exit_code(found(ROW, REJECTING)) == ExitCode.CONTROL_REJECTED
    assert exit_code(found(LEFT_OUT)) == ExitCode.CONTROL_REJECTED
    assert exit_code(found()) == ExitCode.NOTHING_SCORED


def test_rejections_stand_beside_the_number_of_runs() -> None:
    (row,) = tolerances_table(found(REJECTING)).rows
    assert row == ("softmax", "float16", "8", "3.25", "2", "180", "2 of 40", "0 of 90")


@pytest.mark.parametrize("rows", [(ROW,), (LEFT_OUT,), ()])
def test_options_reach_the_fit_and_the_file_is_written_where_there_is_a_row(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rows: tuple[Any, ...],
) -> None:
    asked: list[tuple[Plan, Wanted]] = []

    def fake(plan: Plan, wanted: Wanted, store: object, progress: object) -> Tolerances:
        asked.append((plan, wanted))
        refused = (Refused("gelu_erf", "float16", "1 of 1 kernels"),)
        return msgspec.structs.replace(FOUND, row=rows, refused=refused)

    monkeypatch.setattr("gatecert.calibration.run.calibrate", fake)
    monkeypatch.chdir(tmp_path)
    options = ("--model", "rms", "--seeds", "4", "--envelope", "2", "--strategy", "boundary")
    code = main(["calibrate", "--subject", "softmax_online", "--seed", "7", *options])
    (plan, wanted) = asked[0]
    assert (wanted.model.name, wanted.seeds, wanted.held_out_seeds) == ("rms", 4, 2)
    assert (wanted.envelope, wanted.strategy, plan.seed) == (2.0, "boundary", 7)
    assert [s.name for s in plan.subjects] == [
        "softmax_online",
        "softmax_one_block",
        "torch-softmax",
    ]
    out = capsys.readouterr().out
    assert "refused: gelu_erf in float16: 1 of 1 kernels" in out
    written = list((tmp_path / "gatecert-out").glob("tolerances*.toml"))
    if not rows:
        assert (code, written) == (ExitCode.NOTHING_SCORED, [])
        return
    assert [path.name for path in written] == ["tolerances-r1.toml"]
    assert read_tolerances(written[0]).row == rows
    if rows == (LEFT_OUT,):
        assert code == ExitCode.CONTROL_REJECTED
        assert "fitted without softmax_online the constant is 8, and rejects 3 of its 90" in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--model", "intervall"), "did you mean 'interval'"),
        (("--strategy", "boundry"), "did you mean 'boundary'"),
        (("--envelope", "0.5"), "0.5 is not in the range"),
        (("--held-out-seeds", "0"), "0 is not in the range"),
        (("--subject", "softmax_onlin"), "did you mean 'softmax_online'"),
    ],
)
def test_a_wrong_option_is_said_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["calibrate", *options]) == ExitCode.USAGE
    assert says in capsys.readouterr().err
    assert not (tmp_path / "gatecert-out").exists()


def test_json_is_the_whole_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gatecert.calibration.run.calibrate", lambda *_: FOUND)
    monkeypatch.chdir(tmp_path)
    assert main(["calibrate", "--subject", "softmax_online", "--json"]) == ExitCode.MET
    shown = json.loads(capsys.readouterr().out)
    assert msgspec.convert(shown, Tolerances) == FOUND
