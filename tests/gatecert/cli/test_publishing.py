"""`certify` in continuous integration: what fails it, and what it tells others."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from gatecert.campaign.plan import Plan
from gatecert.campaign.records import Run, Selection
from gatecert.cli import main
from gatecert.errors import ExitCode
from gatecert.store import RunRecord
from tests.runs import mutant, run, subject_run, verdict

KILLED = "softmax/k/drop-load-mask/1-aaaaaa"
ALIVE = "softmax/k/drop-load-mask/2-bbbbbb"
CONFIG = '[subject.softmax]\nentry = "acme:softmax"\n'


class Fake:
    """Stands for the campaign: every run gives `run`, and its plan is kept."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.run = outcome()

    def __call__(self, plan: Plan, record: RunRecord, progress: Any) -> Run:
        self.plans.append(plan)
        return self.run


def outcome(killed: str = "rejected", alive: str = "accepted", **changes: Any) -> Run:
    """A run with two mutants, by default one killed and one alive."""
    part = subject_run(
        mutants=(mutant(KILLED), mutant(ALIVE)),
        verdicts=(
            verdict("softmax/original"),
            verdict(KILLED, killed),
            verdict(ALIVE, alive),
        ),
    )
    return run(part, **changes)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    found = Fake()
    monkeypatch.setattr("gatecert.campaign.run.run_campaign", found)
    # `main` of a repository that is not there.
    monkeypatch.setattr("gatecert.campaign.changes.check_revision", lambda *_: None)
    return found


def last_words(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


RATCHET = ("certify", "--ratchet", "r.json")


def test_a_missing_ratchet_is_refused_before_anything_runs(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(RATCHET) == ExitCode.USAGE
    assert "--update-ratchet" in last_words(capsys)
    assert fake.plans == []


def test_a_ratchet_is_written_held_and_fails_on_a_lost_kill(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RATCHET, "--update-ratchet"]) == ExitCode.MET
    known = json.loads(Path("r.json").read_text())["gates"]["oracle"]
    assert known == {"survived": [ALIVE], "killed": [KILLED]}
    assert main(RATCHET) == ExitCode.MET
    fake.run = outcome(killed="accepted", alive="rejected")
    capsys.readouterr()
    assert main(RATCHET) == ExitCode.REQUIREMENT_NOT_MET
    said = last_words(capsys)
    assert f"lost kill, killed in the ratchet: {KILLED}" in said
    assert f"known survivors that are killed now (1): {ALIVE}" in said
    certificate = json.loads(Path("gatecert-out/certificate.json").read_text())
    assert certificate["unmet"] == [f"lost kill, killed in the ratchet: {KILLED}"]


def test_an_update_is_no_failure_and_takes_the_new_state(fake: Fake) -> None:
    main([*RATCHET, "--update-ratchet"])
    fake.run = outcome(killed="accepted")
    assert main([*RATCHET, "--update-ratchet"]) == ExitCode.MET
    assert main(RATCHET) == ExitCode.MET


@pytest.mark.parametrize("broken", ["control", "nothing", "interrupted"])
def test_a_run_that_proves_nothing_updates_no_ratchet(fake: Fake, broken: str) -> None:
    if broken == "control":
        part = subject_run(
            mutants=(mutant(ALIVE),), verdicts=(verdict("softmax/original", "rejected"),)
        )
        fake.run = run(part)
    elif broken == "nothing":
        fake.run = run(subject_run(verdicts=(verdict("softmax/original"),)))
    else:
        fake.run = outcome(interrupted=True)
    main([*RATCHET, "--update-ratchet"])
    assert not Path("r.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--update-ratchet",), "needs --ratchet"),
        (("--ratchet", "r.json", "--shard", "1/2"), "gatecert merge"),
        (("--time-budget", "1h", "--shard", "1/2"), "cannot be merged"),
        (("--sample", "3", "--list"), "--list"),
        (("--time-budget", "90"), "write a time"),
        (("--time-budget", "0s"), "write a time"),
        (("--time-budget", "5 min"), "write a time"),
        (("--sample", "0"), "x>=1"),
    ],
)
def test_options_that_cannot_be_are_usage_errors(
    fake: Fake, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert main(["certify", *arguments]) == ExitCode.USAGE
    assert said in last_words(capsys)
    assert fake.plans == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("1h30m", 5400), ("0.5h", 1800)]
)
def test_a_time_budget_is_read_in_the_usual_units(fake: Fake, text: str, seconds: float) -> None:
    assert main(["certify", "--time-budget", text]) == ExitCode.MET
    assert fake.plans[0].time_budget_s == seconds


@pytest.mark.parametrize(
    "part", [("--in-diff", "main"), ("--sample", "3"), ("--time-budget", "1m")]
)
def test_a_part_never_takes_the_place_of_a_whole_certificate(
    fake: Fake, part: tuple[str, ...]
) -> None:
    assert main(["certify", *part]) == ExitCode.MET
    assert not Path("gatecert-out/certificate.json").exists()
    assert Path("gatecert-out/certificate-r1.json").exists()


def require(text: str) -> None:
    Path("gatecert.toml").write_text(f"{CONFIG}[require]\n{text}\n")


def test_every_missed_bound_is_listed_on_stderr_and_in_the_document(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    require("kill_rate = 0.9\nclasses = { mask-missing = 0.8, race = 0.5 }\nadversaries = true")
    assert main(["certify", "--json"]) == ExitCode.REQUIREMENT_NOT_MET
    out, err = capsys.readouterr()
    unmet = json.loads(out)["unmet"]
    assert unmet == [
        "oracle: kill_rate is 50.0%, required 90.0%",
        "oracle: class mask-missing is 50.0%, required 80.0%",
        "oracle: class race is unknown (nothing scored), required 50.0%",
        "oracle: no adversary was judged, required all, and none accepted",
    ]
    assert all(f"requirement not met: {line}" in err for line in unmet)


@pytest.mark.parametrize("text", ["kill_rate = 95", "classes = { race = -1.0 }"])
def test_a_percentage_is_no_rate(fake: Fake, capsys: pytest.CaptureFixture[str], text: str) -> None:
    require(text)
    assert main(["certify"]) == ExitCode.USAGE
    assert "write 95% as 0.95" in last_words(capsys)


def test_an_unknown_bug_class_is_no_requirement(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    require("classes = { mask-mising = 0.5 }")
    assert main(["certify"]) == ExitCode.USAGE
    assert "did you mean 'mask-missing'" in last_words(capsys)


def test_a_rate_is_not_asked_of_a_diff(fake: Fake) -> None:
    require("kill_rate = 0.9")
    assert main(["certify"]) == ExitCode.REQUIREMENT_NOT_MET
    assert main(["certify", "--in-diff", "main"]) == ExitCode.MET


def test_a_diff_without_a_mutant_that_can_be_judged_is_no_failure(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.run = run(selection=Selection(since="main", note="no file has changed since main"))
    require("kill_rate = 0.9\nadversaries = true")
    assert main(["certify", "--in-diff", "main"]) == ExitCode.MET
    assert "no file has changed since main" in last_words(capsys)
    fake.run = run(subject_run(mutants=(mutant(ALIVE),)), selection=Selection(since="main"))
    assert main(["certify", "--in-diff", "main"]) == ExitCode.NOTHING_SCORED


def test_too_small_a_sample_cannot_meet_a_bound_by_luck(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = Selection(sample=2, sample_of=90)
    fake.run = outcome(alive="rejected", selection=chosen)
    require("kill_rate = 0.9")
    assert main(["certify", "--sample", "2"]) == ExitCode.REQUIREMENT_NOT_MET
    said = last_words(capsys)
    assert "kill_rate is 100.0% of 2 sampled, which proves 34.2% only" in said
    require("kill_rate = 0.3")
    assert main(["certify", "--sample", "2"]) == ExitCode.MET


def annotations(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("::")]


def test_annotations_come_by_themselves_in_actions_alone(
    fake: Fake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["certify"])
    assert annotations(capsys.readouterr().out) == []
    main(["certify", "--annotations"])
    assert len(annotations(capsys.readouterr().out)) == 1
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    main(["certify"])
    (line,) = annotations(capsys.readouterr().out)
    assert ALIVE in line
    main(["certify", "--no-annotations"])
    assert annotations(capsys.readouterr().out) == []
    main(["certify", "--shard", "1/2"])
    assert annotations(capsys.readouterr().out) == []


def test_annotations_leave_stdout_to_the_document(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["certify", "--json", "--annotations"])
    out, err = capsys.readouterr()
    json.loads(out)
    assert len(annotations(err)) == 1


def test_a_survivor_that_the_ratchet_knows_is_not_annotated(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*RATCHET, "--update-ratchet"])
    capsys.readouterr()
    main([*RATCHET, "--annotations"])
    assert annotations(capsys.readouterr().out) == []
    fake.run = outcome(killed="accepted")
    main([*RATCHET, "--annotations"])
    (line,) = annotations(capsys.readouterr().out)
    assert KILLED in line


def test_the_step_summary_is_appended(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    main(["certify"])
    text = summary.read_text()
    assert text.startswith("before\n## gatecert")
    assert ALIVE in text


def test_a_summary_that_cannot_be_written_costs_no_verdict(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert main(["certify"]) == ExitCode.MET
    assert "no step summary" in last_words(capsys)


def test_junit_is_written_where_it_is_asked_for(fake: Fake) -> None:
    assert main(["certify", "--junit", "reports/junit.xml"]) == ExitCode.MET
    suites = ET.parse("reports/junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("2", "1")


def test_an_ignore_file_beside_the_configuration_is_read(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("gatecert-ignore.toml").write_text(
        f'[[ignore]]\nmutant = "{ALIVE}"\nreason = "the caller pads"\n'
    )
    main(["certify"])
    (entry,) = fake.plans[0].ignore
    assert (entry.mutant, entry.reason, entry.line) == (ALIVE, "the caller pads", 1)
    Path("gatecert-ignore.toml").write_text('[[ignore]]\nmutant = "x"\n')
    assert main(["certify"]) == ExitCode.USAGE
    assert "gatecert-ignore.toml:1" in last_words(capsys)


def test_a_budget_that_ended_first_says_so_and_what_to_do(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = ((KILLED, "oracle"), (ALIVE, "oracle"))
    fake.run = outcome(selection=Selection(time_budget_s=60.0, not_reached=missed))
    assert main(["certify", "--time-budget", "1m"]) == ExitCode.NOTHING_SCORED
    said = last_words(capsys)
    assert "time budget of 60 s spent: 2 mutants not reached" in said
    assert "nothing scored: of 2 mutants 2 not run; raise --time-budget" in said
