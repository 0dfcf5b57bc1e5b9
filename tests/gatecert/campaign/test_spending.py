"""The lines that say what a run cost add up."""

from __future__ import annotations

from gatecert.campaign.spending import Spending, comparing_line, waiting_line
from gatecert.gates.records import GateOutcome, Spent, Verdict
from gatecert.mutants.records import CodeComparison, CodeVerdict


def test_shares_are_of_the_processes_time_and_the_rate_of_the_clocks() -> None:
    spending = Spending()
    for _ in range(4):
        spending.add(
            Verdict("m", "oracle", GateOutcome.REJECTED, duration_s=1.0, spent=Spent(0.5, 0.75))
        )
    assert spending.line(2.0) == (
        "judged 4 candidates, 2.0 a second: 50% in the interpreter, 25% starting processes, "
        "25% importing, copying and comparing"
    )
    assert sum(spending.seconds.values()) == 4.0


def test_a_run_that_knew_all_says_so() -> None:
    assert Spending().line(2.0) == "judged nothing that was not known"
    assert comparing_line([]) == "compared nothing that was not known"


def test_comparing_is_told_per_mutant_and_signature() -> None:
    said = [
        CodeComparison(
            "m", CodeVerdict.VIABLE, signatures_compiled=number, seconds=9.0, cpu_s=0.04 * number
        )
        for number in (1, 2, 3)
    ]
    assert "of 3 mutants: median 40 ms, p90 40 ms" in comparing_line(said)
    one = "compared the code of 1 mutant: 40 ms per signature on a core"
    assert comparing_line(said[:1]) == one


def test_what_fresh_processes_will_take_is_told_by_the_originals() -> None:
    originals = {
        "softmax": Verdict("softmax/original", "gpu", GateOutcome.ACCEPTED, duration_s=9.0)
    }
    subjects = ["softmax"] * 60
    assert waiting_line("gpu", originals, subjects, 2) == (
        "gate 'gpu': 60 candidates in fresh processes, 5 minutes at most with 2 jobs"
    )
    assert waiting_line("gpu", {}, subjects, 2) == ""
