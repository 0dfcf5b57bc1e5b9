"""Small real runs for the end-to-end tests: real kernels, real sandbox, few subjects."""

from __future__ import annotations

from pathlib import Path

from gatecert.campaign.plan import Plan, gate_refs
from gatecert.campaign.progress import Silent
from gatecert.campaign.records import Run
from gatecert.campaign.run import run_campaign
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.operators.records import Operator
from gatecert.operators.registry import all_operators
from gatecert.store import Scope, recording


def corpus_run(
    out: Path,
    subjects: tuple[str, ...] = ("softmax_one_block",),
    gates: tuple[str, ...] = ("oracle",),
    *,
    operators: tuple[Operator, ...] | None = None,
    jobs: int = 1,
    overlay: bool = True,
    quick: bool = True,
) -> Run:
    """`certify` on some corpus subjects, without command line or report."""
    config = load_config(CORPUS_CONFIG)
    plan = Plan(
        root=Path(config.root),
        subjects=tuple(s for s in config.subjects if s.name in subjects),
        gates=gate_refs(gates, config.gates, config.root),
        operators=all_operators() if operators is None else operators,
        quick=quick,
        jobs=jobs,
        overlay=overlay,
    )
    with recording(out, Scope("certify")) as record:
        run = run_campaign(plan, record, Silent())
        record.finish()
    return run
