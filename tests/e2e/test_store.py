"""Claims about real runs and their store: shards make the whole, cells make the verdicts, and
nothing unchanged is judged again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from gatecert.campaign.merge import gather, merge
from gatecert.campaign.plan import Plan, gate_refs
from gatecert.campaign.progress import Silent
from gatecert.campaign.run import run_campaign
from gatecert.certificate import certify
from gatecert.certificate.records import Certificate
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.errors import ExitCode
from gatecert.gates.cells import Cell, Sight, unpack_cells
from gatecert.gates.oracle import OracleGate
from gatecert.gates.records import GateOutcome, Reason
from gatecert.operators.registry import get_operator
from gatecert.oracle.comparators import judge_observation
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.reports.json import render_json
from gatecert.store import DATABASE, Scope, Shard, open_runs, recording
from tests.e2e.commands import ROOT, gatecert

OPERATORS = ("drop-load-mask", "drop-store-mask", "dropped-factor", "dropped-mask-term")
"""None leaves elements of the output unwritten: under a preset those hold what was there."""


def campaign(out: Path, *, matrix: bool = False, shard: Shard | None = None) -> Certificate:
    """The certificate of a small run of two gates on one subject."""
    config = load_config(CORPUS_CONFIG)
    plan = Plan(
        root=Path(config.root),
        subjects=tuple(s for s in config.subjects if s.name == "leaky_relu"),
        gates=gate_refs(("oracle", "allclose-one-shape"), config.gates, config.root),
        operators=tuple(get_operator(name) for name in OPERATORS),
        quick=True,
        matrix=matrix,
        shard=shard,
    )
    with recording(out, Scope("certify", matrix=matrix, shard=shard)) as record:
        run = run_campaign(plan, record, Silent())
        record.finish()
    return certify(run)


def timeless(certificate: Certificate) -> str:
    return render_json(msgspec.structs.replace(certificate, timings_s={}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return campaign(tmp_path_factory.mktemp("whole"))


@pytest.mark.timeout(900)
def test_three_shards_merge_into_the_unsharded_certificate(
    tmp_path: Path, whole: Certificate
) -> None:
    parts = [campaign(tmp_path / str(k), shard=Shard(k, 3)) for k in (1, 2, 3)]
    ids = [set(part.results) for part in parts]
    assert set.union(*ids) == set(whole.results)
    assert sum(map(len, ids)) == len(whole.results)
    assert max(map(len, ids)) - min(map(len, ids)) <= 1
    merged = gather([tmp_path / str(k) for k in (3, 1, 2)])
    with recording(tmp_path / "merged", merged.scope) as record:
        found = merge(merged, record, 1, Silent())
    assert timeless(certify(found)) == timeless(whole)


@pytest.mark.timeout(900)
def test_a_matrix_has_the_same_verdicts_and_they_follow_from_its_cells(
    tmp_path: Path, whole: Certificate
) -> None:
    found = campaign(tmp_path, matrix=True)
    assert found.results == whole.results
    assert found.survivors == whole.survivors
    with open_runs(tmp_path) as runs:
        stored = runs.load("r1")
    said = {s.verdict.candidate: s for s in stored.verdicts if s.verdict.gate == "oracle"}
    judged = 0
    for one in said.values():
        if one.verdict.outcome in (GateOutcome.ACCEPTED, GateOutcome.REJECTED):
            cells = unpack_cells(one.observed)
            assert len({cell.case for cell in cells}) == one.verdict.cases
            first = next((cell.case for cell in cells if not passes(cell)), "")
            rejected = one.verdict.outcome is GateOutcome.REJECTED
            assert first == (one.verdict.case if rejected else ""), one.verdict.candidate
            judged += 1
    assert judged == len(said) > 10
    others = [s for s in stored.verdicts if s.verdict.gate != "oracle"]
    assert others and not any(s.observed for s in others)


def passes(cell: Cell) -> bool:
    """What the oracle says of a case, from its record alone."""
    comparator = OracleGate().comparator
    assert isinstance(comparator, RoundingInterval)

    def fine(sight: Sight) -> bool:
        seen = [o for o in sight.outputs if not o.rounded_reference]
        return sight.guard is Reason.NONE and all(
            judge_observation(comparator, one).passed for one in seen
        )

    return fine(cell.run) and all(map(fine, cell.again))


CONFIG = f"""
import_paths = [".", "{ROOT / "tests" / "testdata"}"]

[subject.softmax]
operation = "softmax"
entry = "kernels_softmax:softmax"

[subject.mine]
operation = "softmax"
entry = "mine:softmax"
"""


@pytest.mark.timeout(900)
def test_after_an_edit_only_what_saw_it_is_judged_again(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text((ROOT / "tests" / "testdata" / "kernels_softmax.py").read_text())
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    command = ("certify", "--gate", "oracle", "--quick", "--operator", "drop-store-mask")
    judged = []
    for edit in ("", "", "\n# an edit\n"):
        mine.write_text(mine.read_text() + edit)
        done = gatecert(tmp_path, *command, "--out", "out", "--jobs", "1")
        assert done.returncode == ExitCode.MET, done.stderr
        judged.append(verdicts_by_subject(tmp_path / "out"))
    first, again, edited = judged
    assert again == first
    assert edited == {"softmax": first["softmax"], "mine": 2 * first["mine"]}


def verdicts_by_subject(out: Path) -> dict[str, int]:
    with closing(sqlite3.connect(out / DATABASE)) as database:
        rows = database.execute(
            "SELECT substr(candidate, 1, instr(candidate, '/') - 1), count(*) FROM verdict "
            "GROUP BY 1"
        ).fetchall()
    return dict(rows)
