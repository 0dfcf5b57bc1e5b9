"""A small plan for the tests of the store."""

from __future__ import annotations

from gatecert.campaign.records import Run
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.store.records import PlannedPart, PlannedTask, Scope, Tasks
from tests.runs import mutant, run, subject_run

SCOPE = Scope("certify", gates=("oracle",))
KILLED = "softmax/k/drop-load-mask/1-aaaaaa"
OTHER = "softmax/k/drop-load-mask/2-bbbbbb"
VERDICT = Verdict(KILLED, "oracle", GateOutcome.REJECTED, detail="wrong", margin=float("inf"))
ORIGINAL = Verdict("softmax/original", "oracle", GateOutcome.ACCEPTED, bits="b")
PARTS = (PlannedPart("softmax", {"/x.py": "text"}, (), 1.0, "s", ()),)
TASKS = (
    PlannedTask("softmax", "softmax/original", "oracle", "key-0"),
    PlannedTask("softmax", KILLED, "oracle", "key-1"),
    PlannedTask("softmax", OTHER, "oracle", "key-2"),
)
ALL = Tasks(TASKS)


def planned() -> Run:
    """One subject with two mutants."""
    return run(subject_run(mutants=(mutant(KILLED), mutant(OTHER))))
