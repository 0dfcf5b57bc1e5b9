"""Claims about labels that leave mutants out of the kill rate. The whole corpus is checked by
benchmarks/labels.py."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.labels import Checked, checked, counts, exit_code_of, out_by_label
from gatecert.campaign.progress import Silent
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.supervise import server_pool
from gatecert.cli.setup import make_plan
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.errors import ExitCode
from gatecert.gates.records import GateOutcome, Reason
from gatecert.operators.records import ObservableBy

SUBJECT = "leaky_relu"
KILLED = f"{SUBJECT}/_leaky_relu_kernel/drop-load-mask/"


@pytest.fixture(scope="module")
def rows() -> list[Checked]:
    """All that is out by its label, and a mutant whose label is falsified to be out as well."""
    plan = make_plan(load_config(CORPUS_CONFIG), subject_names=[SUBJECT], gate_names=["oracle"])
    with server_pool(1) as pool:
        planned = plan_campaign(plan, pool, Silent())
        labelled = out_by_label(plan, planned)[SUBJECT]
        wrong = next(one for one in planned[0].run.mutants if one.id.startswith(KILLED))
        assert wrong not in labelled
        wrong = msgspec.structs.replace(wrong, observable_by=())
        return list(checked(plan, planned, {SUBJECT: [*labelled, wrong]}, pool))


def test_what_a_label_leaves_out_is_the_original_bit_for_bit(rows: list[Checked]) -> None:
    true = [row for row in rows if not row.mutant.startswith(KILLED)]
    assert {row.labels for row in true} == {(), (ObservableBy.FAR_SPAN,)}
    assert [row for row in true if row.outcome is not GateOutcome.ACCEPTED] == []
    assert all(row.same_bits for row in true)
    assert exit_code_of(true) is ExitCode.MET


def test_a_wrong_label_is_found(rows: list[Checked]) -> None:
    (wrong,) = (row for row in rows if row.mutant.startswith(KILLED))
    assert (wrong.outcome, wrong.reason) == (GateOutcome.REJECTED, Reason.BOUNDS)
    assert wrong.case and wrong.detail
    assert exit_code_of(rows) is ExitCode.REQUIREMENT_NOT_MET
    assert counts(rows)["no label: rejected"] == 1
