"""Claims about `[oracle.NAME]`: the oracle under other shapes, comparators and tolerances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.config import load_config
from gatecert.errors import UsageError
from gatecert.gates.config import OracleSettings, ToleranceRow
from gatecert.gates.oracle import OracleGate
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.registry import make_gate
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.oracle.comparators import COMPARATORS, AllClose, BaselineRatio
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.sandbox.protocol import GateRef, Judged, Limits, ShardRequest, Task
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA, Judge, mutated

SCALED = mutated("x / tl.sum(x, axis=0)", "1.001 * x / tl.sum(x, axis=0)")
"""A softmax that is a thousandth too large."""


def say(judge: Judge, settings: OracleSettings, dtype: str = "float32") -> Verdict:
    """The verdict of that oracle on the softmax that is a thousandth too large."""
    subject = Subject(
        "softmax",
        "kernels_softmax:softmax",
        "softmax",
        dtypes=(dtype,),
        import_paths=(str(TESTDATA),),
    )
    texts = {str(TESTDATA / name): text for name, text in SCALED.items()}
    candidate = Candidate("candidate", CandidateKind.MUTANT, "softmax", texts)
    request = ShardRequest(
        subject,
        gates=(GateRef("oracle-mine", str(TESTDATA), oracle=settings),),
        tasks=(Task(candidate, "oracle-mine", False),),
        limits=Limits(factor=0.0, minimum_s=60.0, baseline_s=60.0),
    )
    (said,) = [e.verdict for e in judge.server.ask(request) if isinstance(e, Judged)]
    return said


@pytest.mark.parametrize(
    ("comparator", "outcome"),
    [
        ({}, GateOutcome.REJECTED),
        ({"type": "AllClose", "atol": 0.0, "rtol": 2e-3}, GateOutcome.ACCEPTED),
        ({"type": "AllClose", "atol": 0.0, "rtol": 5e-4}, GateOutcome.REJECTED),
        ({"type": "Envelope", "observed": 1e-3, "runs": 5}, GateOutcome.ACCEPTED),
        ({"type": "RootMeanSquare", "limit": 2e-3, "relative": True}, GateOutcome.ACCEPTED),
        ({"type": "RootMeanSquare", "limit": 5e-4, "relative": True}, GateOutcome.REJECTED),
        ({"type": "Cosine", "limit": 1e-9}, GateOutcome.ACCEPTED),
        ({"type": "Cosine", "limit": 1e-9, "mean": "arithmetic"}, GateOutcome.REJECTED),
        ({"type": "BaselineRatio", "factor": 2.0}, GateOutcome.REJECTED),
        ({"type": "BaselineRatio", "factor": 2.0, "atol": 1e-2}, GateOutcome.ACCEPTED),
    ],
)
def test_the_comparator_of_the_table_decides(
    judge: Judge, comparator: dict[str, Any], outcome: GateOutcome
) -> None:
    verdict = say(judge, OracleSettings("boundary", comparator))
    assert verdict.outcome is outcome, verdict.detail
    assert verdict.gate == "oracle-mine"


def test_a_row_goes_before_the_comparator_for_its_operation_and_dtype_alone(judge: Judge) -> None:
    wide = {"type": "Absolute", "atol": 1.0}
    rows = (ToleranceRow("softmax", "float32", wide), ToleranceRow("matmul", "bfloat16", wide))
    settings = OracleSettings("regular", rows=rows)
    assert say(judge, settings).outcome is GateOutcome.ACCEPTED
    assert say(judge, settings, "bfloat16").outcome is GateOutcome.REJECTED


@pytest.mark.parametrize("kind", COMPARATORS, ids=lambda kind: kind.__name__)
def test_every_comparator_can_stand_in_a_table(kind: type[msgspec.Struct]) -> None:
    required = {f.name: 1.0 for f in msgspec.structs.fields(kind) if f.required}
    made = kind(**required)
    gate = make_gate(
        "oracle-x", None, ".", None, OracleSettings(comparator=msgspec.to_builtins(made))
    )
    assert isinstance(gate, OracleGate)
    assert gate.comparator == made


@pytest.mark.parametrize(
    ("comparator", "says"),
    [
        (
            {"atol": 1.0},
            r"gate 'oracle-x', comparator: type = '' is no comparator; there are Rou",
        ),
        ({"type": "Allclose"}, r"type = 'Allclose' is no comparator; did you mean 'AllClose'"),
        ({"type": "AllClose", "atol": 1.0, "rtoll": 0.0}, r"no 'rtoll'; did you mean 'rtol'"),
        ({"type": "AllClose", "atol": 1.0}, r"missing required field `rtol`"),
        ({"type": "AllClose", "atol": "x", "rtol": 0.0}, r"Expected `float`, got `str`"),
        ({"type": "Absolute", "atol": -1.0}, r"must be finite and not negative"),
        ({"type": "Envelope", "observed": 1.0, "factor": 0.5}, r"factor of 1 or more"),
        ({"type": "RoundingInterval", "constant": 0.0}, r"constants above 0"),
    ],
)
def test_a_wrong_comparator_is_an_error_with_its_place(
    comparator: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        make_gate("oracle-x", None, ".", None, OracleSettings(comparator=comparator))


def test_tables_become_gates_by_name(tmp_path: Path) -> None:
    path = tmp_path / "gatecert.toml"
    path.write_text(
        '[subject.a]\nentry = "m:f"\noperation = "softmax"\n'
        '[oracle.flash]\ncomparator = { type = "BaselineRatio", factor = 2.0 }\n'
    )
    config = load_config(path)
    assert list(config.oracles) == ["oracle-flash"]
    settings = OracleSettings(comparator=config.oracles["oracle-flash"].comparator)
    gate = make_gate("oracle-flash", None, str(tmp_path), None, settings)
    assert isinstance(gate, OracleGate)
    assert gate.comparator == BaselineRatio(2.0)
    assert gate.comparator != AllClose(0.0, 2.0)
    assert OracleGate().comparator == RoundingInterval()


def test_one_name_for_a_gate_and_an_oracle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gatecert.toml"
    path.write_text('[subject.a]\nentry = "m:f"\n[oracle.x]\n[gate.oracle-x]\nkind = "pytest"\n')
    with pytest.raises(UsageError, match=r"\[oracle\.x\] and \[gate\.oracle-x\] are one name"):
        load_config(path)


def test_a_wrong_key_of_an_oracle_names_its_table(tmp_path: Path) -> None:
    path = tmp_path / "gatecert.toml"
    path.write_text('[subject.a]\nentry = "m:f"\n[oracle.mine]\nstrateggy = "quick"\n')
    with pytest.raises(UsageError, match=r"'strateggy' in oracle\.mine; did you mean 'strategy'"):
        load_config(path)
