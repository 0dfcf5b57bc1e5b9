"""`mutants` and `show` say what would be planted and what became of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from gatecert.campaign.plan import Plan
from gatecert.campaign.records import SubjectRun
from gatecert.certificate import certify
from gatecert.cli import main
from gatecert.errors import ExitCode
from gatecert.reports.json import render_json
from tests.runs import subject_run, typical_run

SURVIVOR = "softmax/k/wrong-constant.swap/1-bbbbbb"
LADDER = "softmax/k/wrong-constant.1e-4/1-eeeeee"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configured folder whose subject is planted as in the typical run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gatecert.toml").write_text('[subject.softmax]\nentry = "acme.kernels:softmax"\n')
    plant(monkeypatch, typical_run().subjects[0])
    return tmp_path


def plant(monkeypatch: pytest.MonkeyPatch, *parts: SubjectRun) -> None:
    def planted(plan: Plan) -> tuple[SubjectRun, ...]:
        return parts

    monkeypatch.setattr("gatecert.cli.mutants.planted", planted)


@pytest.mark.parametrize("arguments", [["mutants", "list"], ["certify", "--list"]])
def test_a_list_has_a_line_per_mutant(
    workspace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[1] == f"{SURVIVOR}  the load has no mask"
    assert lines[4] == f"{LADDER}  the load has no mask  [ladder]"
    assert not (workspace / "gatecert-out").exists()


def test_a_list_as_json_holds_whole_records(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mutants", "list", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["id"] for record in records][1] == SURVIVOR
    assert {"diff", "observable_by", "reveal", "scored"} <= records[0].keys()


def test_stats_count_by_operator_and_subject_and_say_what_was_left_alone(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mutants", "stats"]) == 0
    out = capsys.readouterr().out
    assert "4 scored and 1 on the detection ladder; 3 of the scored are observable" in out
    assert "not mutated: acme.kernels:old: not launched" in out
    assert main(["mutants", "stats", "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)
    assert (stats["scored"], stats["observable"], stats["by_subject"]) == (4, 3, {"softmax": 4})
    assert len(stats["labels_sha256"]) == 64


def test_nothing_planted_and_a_failed_subject_are_no_success(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, subject_run())
    assert main(["mutants", "stats"]) == ExitCode.NOTHING_SCORED
    plant(monkeypatch, subject_run(failed="no module named 'acme'"))
    assert main(["mutants", "list"]) == ExitCode.ENVIRONMENT_FAILED
    assert "softmax: no module named 'acme'" in capsys.readouterr().err


def test_show_joins_the_mutant_with_what_the_last_run_said(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", SURVIVOR]) == 0
    assert "no run in --out has judged it" in capsys.readouterr().out
    (workspace / "gatecert-out").mkdir()
    text = render_json(certify(typical_run()))
    (workspace / "gatecert-out/certificate.json").write_text(text)
    assert main(["show", SURVIVOR]) == 0
    out = capsys.readouterr().out
    assert "oracle: survived" in out
    assert "weak: survived" in out
    assert "error 0.00015 against allowance 0.0002" in out
    assert "+    x = tl.load(p)" in out
    assert main(["show", SURVIVOR, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["mutant"]["id"] == SURVIVOR
    assert shown["survivor"]["reason"] == "tolerated"


def test_show_takes_a_glob_and_shows_all_that_it_names(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "softmax/*wrong-constant*"]) == 0
    out = capsys.readouterr().out
    assert SURVIVOR in out and LADDER in out and "drop-load-mask" not in out
    assert main(["show", "softmax/*swap*", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["mutant"]["id"] == SURVIVOR


def test_show_takes_the_newest_certificate_that_knows_the_mutant(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = workspace / "gatecert-out"
    out.mkdir()
    whole = typical_run()
    part = msgspec.structs.replace(whole, gates=("oracle",))
    elsewhere = msgspec.structs.replace(whole, subjects=whole.subjects[1:])
    for age_s, name, run in (
        (300, "certificate.json", whole),
        (200, "certificate-r2.json", part),
        (100, "certificate-r3.json", elsewhere),
    ):
        (out / name).write_text(render_json(certify(run)))
        then = (out / name).stat().st_mtime - age_s
        os.utime(out / name, (then, then))
    assert main(["show", SURVIVOR]) == 0
    said = capsys.readouterr().out
    assert "oracle: survived" in said
    assert "weak:" not in said


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("softmax/k/wrong-constant.swap/1-bbbbbc", f"did you mean '{SURVIVOR}'"),
        ("softmax/*nonsense*", "no mutant 'softmax/*nonsense*'; `gatecert mutants list` prints"),
        ("gelu/k/x/1", "known are softmax"),
    ],
)
def test_an_unknown_id_is_answered_with_the_nearest(
    workspace: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str
) -> None:
    assert main(["show", name]) == ExitCode.USAGE
    assert hint in capsys.readouterr().err


def test_a_certificate_that_is_none_is_one_clear_line(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "gatecert-out").mkdir()
    (workspace / "gatecert-out/certificate.json").write_text("{")
    assert main(["show", SURVIVOR]) == ExitCode.USAGE
    assert "not a certificate of this version" in capsys.readouterr().err
