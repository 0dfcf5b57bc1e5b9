"""`controls` counts, bounds, and exits by what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.campaign.controls import ControlRow, ControlsRecord
from gatecert.cli import main
from gatecert.cli.controls import controls_table, exit_code, verdict_line
from gatecert.errors import ExitCode
from gatecert.gates.records import GateOutcome
from gatecert.store import open_runs


def row(subject: str, seed: int, outcome: str = "accepted", **changes: Any) -> ControlRow:
    fields = {"cases": 7, "margin": 0.25, "distinct": True, **changes}
    return ControlRow(subject, f"{subject}/benign/1", seed, GateOutcome(outcome), **fields)


def record(*rows: ControlRow) -> ControlsRecord:
    return ControlsRecord("oracle", (0, 1), rows)


def test_rows_are_summed_per_subject() -> None:
    exact = {"compared": 1000, "exactly": 250}
    rejected = row("a", 1, "rejected", margin=1.5, distinct=False, **exact)
    rows = (row("a", 0, **exact), rejected, row("b", 0))
    table = controls_table(record(*rows))
    assert table.rows == (
        ("a", "2", "1", "14", "1", "1.500", "25.0%"),
        ("b", "1", "1", "7", "0", "0.250", "-"),
        ("all", "3", "2", "21", "1", "1.500", "25.0%"),
    )


def test_the_bound_has_the_subject_as_unit_however_many_seeds_there_were() -> None:
    twelve = [row(f"kernel{i}", seed) for i in range(12) for seed in range(10)]
    expected = 100 * (1 - 0.025 ** (1 / 12))
    assert verdict_line(record(*twelve)).endswith(f"below {expected:.1f}%")


def test_the_bound_says_under_how_many_seeds_rewrites_were_judged() -> None:
    originals = [
        msgspec.structs.replace(row(name, seed), control=f"{name}/original")
        for name in "ab"
        for seed in (0, 1)
    ]
    whole = record(*originals, row("a", 0), row("a", 1))
    assert "rejected under 2 seeds; at 95%" in verdict_line(whole)
    part = record(*originals, row("a", 0), row("b", 0))
    assert "rejected under 2 seeds (benign rewrites: 1); at 95%" in verdict_line(part)
    assert "rejected under 2 seeds (benign rewrites: none);" in verdict_line(record(*originals))


@pytest.mark.parametrize(("given", "asked"), [((), None), (("--rewrite-seeds", "2"), 2)])
def test_the_number_of_seeds_of_rewrites_reaches_the_run_and_is_part_of_its_scope(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    asked: int | None,
) -> None:
    seen: list[int | None] = []

    def fake(*_: object, rewrite_seeds: int | None) -> ControlsRecord:
        seen.append(rewrite_seeds)
        return record(row("a", 0))

    monkeypatch.setattr("gatecert.campaign.controls.run_controls", fake)
    monkeypatch.chdir(tmp_path)
    assert main(["controls", "--seeds", "3", *given]) == ExitCode.MET
    assert seen == [asked]
    with open_runs(tmp_path / "gatecert-out") as runs:
        (info,) = runs.all()
    command = " ".join(
        ["controls", "--gate oracle", "--seeds 3", *([" ".join(given)] if given else [])]
    )
    assert str(info.scope) == command
    assert main(["controls", "--rewrite-seeds", "-1"]) == ExitCode.USAGE


def test_a_rejected_control_exits_with_three_and_no_verdict_with_four() -> None:
    assert exit_code(record(row("a", 0))) == ExitCode.MET
    assert exit_code(record(row("a", 0), row("a", 1, "rejected"))) == ExitCode.CONTROL_REJECTED
    both = record(row("a", 0, "timeout"), row("a", 1, "rejected"))
    assert exit_code(both) == ExitCode.ENVIRONMENT_FAILED
    assert exit_code(record()) == ExitCode.NOTHING_SCORED


def test_every_seed_is_asked_for_and_the_record_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[int]] = []

    def fake(
        plan: object, seeds: Any, store: object, progress: object, **options: Any
    ) -> ControlsRecord:
        asked.append(list(seeds))
        return record(row("a", 5, "rejected", detail="3 elements are wrong"))

    monkeypatch.setattr("gatecert.campaign.controls.run_controls", fake)
    monkeypatch.chdir(tmp_path)
    assert main(["controls", "--seeds", "3", "--seed", "5"]) == ExitCode.CONTROL_REJECTED
    assert asked == [[5, 6, 7]]
    assert "3 elements are wrong" in capsys.readouterr().out
    assert json.loads((tmp_path / "gatecert-out/controls.json").read_text())["gate"] == "oracle"
