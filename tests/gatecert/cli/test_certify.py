"""`certify` writes what it promises, and stdout holds the result alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatecert.campaign.plan import Plan
from gatecert.campaign.records import Run
from gatecert.cli import main
from gatecert.errors import EnvironmentFailure, ExitCode
from gatecert.store import RunRecord, open_runs
from gatecert.store.records import RunState
from tests.runs import mutant, run, subject_run, typical_run, verdict

ID = "softmax/k/drop-load-mask/1-aaaaaa"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    config = '[subject.softmax]\nentry = "acme:softmax"\n[require]\nkill_rate = 0.9\n'
    (tmp_path / "gatecert.toml").write_text(config)
    return tmp_path


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that were run; every run gives the same record."""
    seen: list[Plan] = []

    def fake(plan: Plan, record: RunRecord, progress: Any) -> Run:
        seen.append(plan)
        part = subject_run(
            mutants=(mutant(ID),),
            verdicts=(verdict("softmax/original"), verdict(ID, "rejected")),
        )
        return run(part)

    monkeypatch.setattr("gatecert.campaign.run.run_campaign", fake)
    return seen


def test_it_writes_a_certificate_and_a_report_and_names_them(
    workspace: Path, plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certify"]) == ExitCode.MET
    certificate = json.loads((workspace / "gatecert-out/certificate.json").read_text())
    assert certificate["kill_rate"]["value"] == 1.0
    assert (workspace / "gatecert-out/report.md").read_text().startswith("# gatecert")
    out, err = capsys.readouterr()
    assert "mask-missing" in out
    assert "gatecert-out/certificate.json" in err


def test_json_is_the_only_thing_on_stdout(
    workspace: Path, plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["certify", "--json", "--seed", "3", "--quick", "--jobs", "1"])
    out = capsys.readouterr().out
    assert json.loads(out)["gate"] == "oracle"
    assert out == (workspace / "gatecert-out/certificate.json").read_text()
    assert (plans[0].seed, plans[0].quick, plans[0].jobs) == (3, True, 1)


def test_one_mutant_leaves_the_certificate_of_the_whole_run_alone(
    workspace: Path, plans: list[Plan]
) -> None:
    main(["certify"])
    whole = (workspace / "gatecert-out/certificate.json").read_text()
    main(["certify", "--only", ID, "--seed", "9"])
    assert plans[1].only == (ID,)
    assert (workspace / "gatecert-out/certificate.json").read_text() == whole
    assert (workspace / "gatecert-out/certificate-r2.json").exists()


@pytest.mark.parametrize(
    "part",
    [("--subject", "softmax"), ("--operator", "drop-load-mask"), ("--shard", "1/2")],
)
def test_a_part_of_a_run_is_named_after_its_id(
    workspace: Path, plans: list[Plan], capsys: pytest.CaptureFixture[str], part: tuple[str, str]
) -> None:
    main(["certify"])
    before = {p: p.read_text() for p in (workspace / "gatecert-out").glob("*.[jm]*")}
    assert main(["certify", *part]) == ExitCode.MET
    assert "gatecert-out/certificate-r2.json" in capsys.readouterr().err
    assert {p: p.read_text() for p in before} == before
    assert (workspace / "gatecert-out/report-r2.md").exists()


def test_a_whole_run_of_another_gate_says_which_certificate_it_replaces(
    workspace: Path, plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["certify"])
    main(["certify"])
    assert "is replaced" not in capsys.readouterr().err
    main(["certify", "--gate", "kernelbench"])
    said = capsys.readouterr().err
    assert "certificate.json was of run r2" in said
    assert "`gatecert report r2` shows it" in said


def test_an_interrupted_run_leaves_the_certificate_of_a_whole_run_alone(
    workspace: Path, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["certify"])
    whole = (workspace / "gatecert-out/certificate.json").read_text()
    part = subject_run(mutants=(mutant(ID),), verdicts=(verdict("softmax/original"),))
    monkeypatch.setattr(
        "gatecert.campaign.run.run_campaign", lambda *_: run(part, interrupted=True)
    )
    assert main(["certify"]) == 130
    assert (workspace / "gatecert-out/certificate.json").read_text() == whole
    partial = workspace / "gatecert-out/certificate-r2.json"
    assert json.loads(partial.read_text())["interrupted"]


def test_a_run_that_was_interrupted_early_is_one_sentence_and_no_table(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = subject_run(mutants=(mutant(ID),), verdicts=(verdict("softmax/original"),))
    early = run(part, interrupted=True)
    monkeypatch.setattr("gatecert.campaign.run.run_campaign", lambda *_: early)
    assert main(["certify"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == (
        "gatecert: interrupted: no mutant is judged yet; the same command goes on where it stopped"
    )
    assert main(["certify", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["interrupted"]


def test_a_run_that_was_interrupted_later_shows_what_it_has(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = subject_run(mutants=(mutant(ID),), verdicts=(verdict(ID, "rejected"),))
    monkeypatch.setattr(
        "gatecert.campaign.run.run_campaign", lambda *_: run(part, interrupted=True)
    )
    assert main(["certify"]) == 130
    out, err = capsys.readouterr()
    assert "1/1 (100.0%)" in out
    assert "the figures are partial" in err


def test_a_shard_without_a_scored_mutant_is_no_failure(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = run(subject_run(verdicts=(verdict("softmax/original"),)))
    monkeypatch.setattr("gatecert.campaign.run.run_campaign", lambda *_: empty)
    assert main(["certify", "--shard", "2/2"]) == ExitCode.MET
    assert main(["certify"]) == ExitCode.NOTHING_SCORED


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0"])
def test_a_shard_that_cannot_be_is_a_usage_error(workspace: Path, text: str) -> None:
    assert main(["certify", "--shard", text]) == ExitCode.USAGE


def test_a_missed_requirement_is_named_and_the_certificate_is_there(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = subject_run(mutants=(mutant(ID),), verdicts=(verdict("softmax/original"), verdict(ID)))
    monkeypatch.setattr("gatecert.campaign.run.run_campaign", lambda *_: run(part))
    assert main(["certify"]) == ExitCode.REQUIREMENT_NOT_MET
    assert "kill_rate is 0.0%, required 90.0%" in capsys.readouterr().err
    assert (workspace / "gatecert-out/certificate.json").exists()


def test_a_failed_subject_still_leaves_a_certificate(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatecert.campaign.run.run_campaign", lambda *_: typical_run())
    assert main(["certify"]) == ExitCode.ENVIRONMENT_FAILED
    assert (workspace / "gatecert-out/certificate.json").exists()


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), EnvironmentFailure("no torch")])
def test_what_was_written_before_outlives_a_run_that_fails(
    workspace: Path, plans: list[Plan], monkeypatch: pytest.MonkeyPatch, ending: BaseException
) -> None:
    main(["certify"])
    before = (workspace / "gatecert-out/certificate.json").read_text()

    def fails(plan: Plan, record: RunRecord, progress: Any) -> Run:
        record.keep("key", verdict(ID))
        raise ending

    monkeypatch.setattr("gatecert.campaign.run.run_campaign", fails)
    assert main(["certify"]) != ExitCode.MET
    assert (workspace / "gatecert-out/certificate.json").read_text() == before
    with open_runs(workspace / "gatecert-out") as runs:
        last = runs.all()[-1]
        assert (last.state, last.verdicts) == (RunState.UNFINISHED, 1)


def test_bad_input_is_refused_before_the_last_run_is_touched(
    workspace: Path, plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["certify"])
    stored = (workspace / "gatecert-out/gatecert.sqlite").read_bytes()
    capsys.readouterr()
    for arguments in (["--gate", "x"], ["--subject", "x"], ["--operator", "x"]):
        assert main(["certify", *arguments]) == ExitCode.USAGE
        assert capsys.readouterr().err.splitlines()[-1].startswith("gatecert: unknown")
    assert (workspace / "gatecert-out/gatecert.sqlite").read_bytes() == stored
