"""`limits` prints the smallest error that is seen, the same every time, and why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from gatecert.campaign.limits import LimitRow, LimitsRecord
from gatecert.cli import main
from gatecert.cli.limits import exit_code, limits_table, medians_line
from gatecert.errors import ExitCode
from gatecert.operators.scaled_result import ERRORS

TESTDATA = Path(__file__).parents[2] / "testdata"
CONFIG = f"""
import_paths = ["{TESTDATA}"]

[subject.softmax]
operation = "softmax"
entry = "kernels_softmax:softmax"
dtypes = ["float16"]

[oracle.known]
strategy = "regular"
comparator = {{ type = "AllClose", atol = 0.0, rtol = 2e-3 }}
"""
SEEN = LimitRow(
    "gelu", "gelu_erf", "float32", 1e-5, "gelu_kernel:9", killed={"gelu_kernel:9": ERRORS}
)
WORSE = LimitRow("gelu", "gelu_erf", "float16", 1e-3, "gelu_kernel:9")
UNSEEN = LimitRow("rope", "rope", "float16", None, "rope_kernel:7")
WITHOUT = LimitRow("argmax", "argmax", "", why="its result has no floating-point numbers")


def record(*rows: LimitRow) -> LimitsRecord:
    return LimitsRecord("oracle", 0, ERRORS, rows)


def test_a_table_has_a_column_per_dtype_and_the_store_where_more_is_needed() -> None:
    table = limits_table(record(SEEN, WORSE, UNSEEN, WITHOUT))
    assert table.title == "Smallest relative error seen by oracle"
    assert table.columns == ("subject", "float32", "float16")
    assert table.rows == (
        ("gelu", "1e-05", "0.001 at gelu_kernel:9"),
        ("rope", "-", "> 0.1 at rope_kernel:7"),
    )
    own = msgspec.structs.replace(WORSE, dtype="")
    assert limits_table(record(own)).columns == ("subject", "limit")


def test_the_median_of_what_is_not_seen_is_above_all_that_was_planted() -> None:
    rows = (SEEN, WORSE, UNSEEN, msgspec.structs.replace(UNSEEN, subject="rope_too"))
    assert medians_line(record(*rows)) == "median: float32 1e-05, float16 > 0.1"
    assert medians_line(record(msgspec.structs.replace(WORSE, dtype=""))) == "median: 0.001"
    assert medians_line(record(WITHOUT)) == "no subject has a limit"


def test_only_where_no_subject_has_a_limit_nothing_was_scored() -> None:
    assert exit_code(record(UNSEEN, WITHOUT)) == ExitCode.MET
    assert exit_code(record(WITHOUT)) == exit_code(record()) == ExitCode.NOTHING_SCORED


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--subject", "softmx"), "unknown subject 'softmx'; did you mean 'softmax'"),
        (("--gate", "oracle-knwn"), "did you mean 'oracle-known'"),
        (("--jobs", "0"), "0 is not in the range"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    says: str,
) -> None:
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gatecert.campaign.limits.run_limits", lambda *_: pytest.fail("it ran"))
    assert main(["limits", *options]) == ExitCode.USAGE
    assert says in capsys.readouterr().err
    assert not (tmp_path / "gatecert-out").exists()


def test_people_are_told_why_a_subject_has_no_limit_and_a_part_has_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    lost = msgspec.structs.replace(
        WORSE, limit=None, why="the gate does not accept the original: x"
    )
    said = record(SEEN, lost, WITHOUT)
    monkeypatch.setattr("gatecert.campaign.limits.run_limits", lambda *_: said)
    assert main(["limits", "--subject", "softmax"]) == ExitCode.MET
    out = capsys.readouterr().out
    assert "gelu in float16: the gate does not accept the original: x\n" in out
    assert "argmax: its result has no floating-point numbers\n" in out
    assert "median: float32 1e-05" in out
    (written,) = (tmp_path / "gatecert-out").glob("limits*.json")
    assert written.name == "limits-r1.json"
    assert msgspec.json.decode(written.read_bytes(), type=LimitsRecord) == said


def test_the_limit_of_a_kernel_under_a_known_tolerance_is_found_and_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    command = ("limits", "--gate", "oracle-known", "--jobs", "1", "--json")
    assert main(command) == ExitCode.MET
    shown = capsys.readouterr().out
    # 1e-3 is below 2e-3, and half a step of float16 (5e-4) on top still is.
    found = msgspec.json.decode(shown, type=LimitsRecord)
    assert found.gate == "oracle-known"
    (row,) = found.rows
    assert (row.subject, row.dtype, row.limit) == ("softmax", "float16", 1e-2)
    assert list(row.killed.values()) == [(1e-2, 1e-1)]
    assert (tmp_path / "gatecert-out" / "limits.json").read_text() == shown

    assert main((*command, "--fresh")) == ExitCode.MET
    assert json.loads(capsys.readouterr().out) == json.loads(shown)


@pytest.mark.parametrize("command", ["limits", "controls"])
def test_a_second_gate_is_refused_and_not_left_out(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [command, "--gate", "oracle", "--gate", "kernelbench", "--out", str(tmp_path / "out")]
    assert main(asked) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"{command} takes one --gate, not 2" in said and "oracle, kernelbench" in said
    assert not (tmp_path / "out").exists()
