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
from gatecert.store import Store
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

    def fake(plan: Plan, store: Store, progress: Any) -> Run:
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
    stored = (workspace / "gatecert-out/run.sqlite").read_bytes()
    main(["certify", "--only", ID, "--seed", "9"])
    assert plans[1].only == (ID,)
    assert (workspace / "gatecert-out/certificate.json").read_text() == whole
    assert (workspace / "gatecert-out/run.sqlite").read_bytes() == stored
    assert (workspace / "gatecert-out/only.json").exists()


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

    def fails(plan: Plan, store: Store, progress: Any) -> Run:
        store.put("key", verdict(ID))
        raise ending

    monkeypatch.setattr("gatecert.campaign.run.run_campaign", fails)
    assert main(["certify"]) != ExitCode.MET
    assert (workspace / "gatecert-out/certificate.json").read_text() == before
    with Store(workspace / "gatecert-out/run.sqlite") as store:
        assert (len(store), store.finished) == (1, False)


def test_bad_input_is_refused_before_the_last_run_is_touched(
    workspace: Path, plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["certify"])
    stored = (workspace / "gatecert-out/run.sqlite").read_bytes()
    capsys.readouterr()
    for arguments in (["--gate", "x"], ["--subject", "x"], ["--operator", "x"]):
        assert main(["certify", *arguments]) == ExitCode.USAGE
        assert capsys.readouterr().err.splitlines()[-1].startswith("gatecert: unknown")
    assert (workspace / "gatecert-out/run.sqlite").read_bytes() == stored
