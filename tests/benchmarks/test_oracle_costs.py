"""Rows of benchmarks/oracle.py are ratios of medians, over the cases that both processes ran."""

from __future__ import annotations

import pytest

from benchmarks.oracle import ALL_CASES, Report, Turn, row_of, summed_up
from gatecert.campaign.environment import describe_environment


def turns_of(bare: dict[str, float], oracle: dict[str, float], whole: float) -> list[list[Turn]]:
    """A repeat: seconds by case of a bare run with a reference of 1 s, and of the oracle with an
    observation of 1 s."""
    return [
        [Turn(case, {"bare": s, "reference": 1.0}) for case, s in bare.items()],
        [
            *(Turn(case, {"oracle": s, "observation": 1.0}) for case, s in oracle.items()),
            Turn(ALL_CASES, {ALL_CASES: whole}),
        ],
    ]


def test_a_row_has_medians_over_repeats_and_then_over_cases() -> None:
    turns = [
        *turns_of({"a": 3.0, "b": 1.0, "c": 9.0}, {"a": 3.0, "b": 3.0, "c": 4.0}, 12.0),
        *turns_of({"a": 3.0, "b": 1.0, "c": 9.0}, {"a": 3.0, "b": 3.0, "c": 4.0}, 12.0),
        *turns_of({"a": 99.0, "b": 0.1, "c": 9.0}, {"a": 9.0, "b": 90.0, "c": 4.0}, 48.0),
    ]
    row = row_of("softmax", 3, turns)
    assert (row.cases, row.repeats) == (3, 3)
    assert row.ratio == pytest.approx(1.0)  # of 1.0, 2.0 and 0.5
    assert row.judged == pytest.approx(0.75)  # of 0.75, 1.5 and 0.4
    assert row.largest == pytest.approx(2.0)
    assert row.further == pytest.approx(12.0 / (16.0 / 3))
    assert row.seconds == {"bare": 3.0, "reference": 1.0, "oracle": 3.0, "observation": 1.0}
    assert row.failed == ()


def test_a_case_that_the_bare_interpreter_cannot_run_is_told_and_not_counted() -> None:
    turns = turns_of({"a": 1.0}, {"a": 1.0, "b": 50.0}, 1.0)
    turns[0].append(Turn("b", failed="TypeError: no"))
    row = row_of("softmax", 1, turns)
    assert (row.cases, row.ratio, row.failed) == (1, 1.0, ("b: TypeError: no",))


def test_a_subject_that_the_bare_interpreter_cannot_run_at_all_is_told_and_not_summed_up() -> None:
    turns = turns_of({}, {"a": 1.0}, 1.0)
    turns[0].append(Turn("a", failed="TypeError: no"))
    lost = row_of("softmax", 1, turns)
    assert (lost.cases, lost.failed) == (0, ("a: TypeError: no",))
    report = Report("", describe_environment(""), "a machine")
    found = summed_up(report, [lost, row_of("gelu", 1, turns_of({"a": 1.0}, {"a": 1.0}, 1.0))])
    assert (found.subjects, found.median) == (1, 1.0)


def test_the_report_has_the_median_of_subjects_with_an_interval_and_the_largest() -> None:
    rows = [
        row_of(str(ratio), 1, turns_of({"a": 1.0}, {"a": 2 * ratio - 1}, 1.0))
        for ratio in (0.5, 0.7, 0.9, 1.1, 1.6)
    ]
    report = summed_up(Report("", describe_environment(""), "a machine"), rows)
    assert report.median == pytest.approx(0.9)
    assert (report.subjects, report.largest) == (5, pytest.approx(1.6))
    assert report.interval[0] < 0.9 < report.interval[1]
    assert report == summed_up(report, rows)
