"""The whole of a calibration: which kernels, run, fit, and the record of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import gatecert
from gatecert.calibration.collect import collect, collecting_gate, with_other_kernels
from gatecert.calibration.fit import check_agreement, fit
from gatecert.calibration.models import Model
from gatecert.calibration.records import FORMAT, Tolerances
from gatecert.campaign.plan import Plan
from gatecert.campaign.progress import Progress
from gatecert.config import Config
from gatecert.errors import NothingScored
from gatecert.store import RunRecord
from gatecert.store.keys import code_sha256


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a calibration was asked for. The first `seeds` from the plan's on are fitted on, the
    `held_out_seeds` after them are not."""

    model: Model
    strategy: str = "certify"
    seeds: int = 3
    held_out_seeds: int = 2
    envelope: float = 1.5


def calibration_plan(plan: Plan, wanted: Wanted, config: Config) -> Plan:
    """The plan with all kernels that compute the same operations, and the gate that records.

    Raises:
        NothingScored: no subject has an operation.
    """
    subjects = with_other_kernels(plan.subjects, config)
    if not subjects:
        raise NothingScored("no subject has an operation, so there is no reference to differ from")
    gate = collecting_gate(wanted.model, wanted.strategy, config.root)
    return replace(plan, subjects=subjects, gates=(gate,))


def calibrate(plan: Plan, wanted: Wanted, record: RunRecord, progress: Progress) -> Tolerances:
    """Run the controls and fit.

    Raises:
        EnvironmentFailure: a kernel disagrees with its reference, or gave no verdict.
    """
    seeds = tuple(range(plan.seed, plan.seed + wanted.seeds + wanted.held_out_seeds))
    collected = collect(plan, wanted.model, seeds, record, progress)
    check_agreement(collected.runs)
    held_out = seeds[wanted.seeds :]
    fitted = fit(collected.runs, wanted.model, envelope=wanted.envelope, held_out_seeds=held_out)
    return Tolerances(
        format=FORMAT,
        reviewed="",
        model=wanted.model.name,
        envelope=wanted.envelope,
        lane=plan.lane,
        strategy=wanted.strategy,
        seeds=seeds[: wanted.seeds],
        held_out_seeds=held_out,
        gatecert=gatecert.__version__,
        oracle_sha256=code_sha256("oracle"),
        sources_sha256=collected.sources_sha256,
        cases_sha256=collected.cases_sha256,
        torch_left_out=fitted.torch_left_out,
        row=fitted.rows,
        refused=fitted.refused,
    )
