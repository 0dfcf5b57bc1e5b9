"""Run the controls of every kernel that computes the same operation, and note what each needs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gatecert.calibration.models import Model, as_table
from gatecert.calibration.torch_results import ENTRY, has_dtype
from gatecert.campaign.controls import ControlsRecord, run_controls
from gatecert.campaign.plan import Plan
from gatecert.campaign.progress import Progress
from gatecert.config import CORPUS_CONFIG, Config, load_config
from gatecert.errors import EnvironmentFailure
from gatecert.gates.cells import Cell, Sight, unpack_cells
from gatecert.gates.config import OracleSettings
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.comparators import RoundingInterval, judge_observation
from gatecert.oracle.observation import Interval, Observation
from gatecert.oracle.operations import resolve_operation
from gatecert.sandbox.protocol import GateRef
from gatecert.store import RunRecord
from gatecert.subjects import Subject

TORCH = "torch-"
CORPUS = "corpus-"
"""Kernels beside the team's own are called by these and the operation's or subject's name."""
_STRICT = RoundingInterval()
"""The bound that needs no fitting: beyond it a kernel disagrees with its reference."""


@dataclass(frozen=True, slots=True)
class Run:
    """One control on one case: the need of its worst output under its worst program order.

    `elements` counts what was compared. `beyond` says in what way it disagrees with the
    reference, if it does.
    """

    operation: str
    kernel: str
    control: str
    case: Case
    need: float
    elements: int
    law: Interval | None
    beyond: str


@dataclass(frozen=True, slots=True)
class Collected:
    """All runs, and what they rest on."""

    runs: tuple[Run, ...]
    sources_sha256: dict[str, str]
    cases_sha256: str


def with_other_kernels(own: Sequence[Subject], config: Config) -> tuple[Subject, ...]:
    """The subjects that have an operation, and beside them what else computes it in their dtypes:
    further kernels of the configuration, those of the built-in corpus, and torch."""
    own = [subject for subject in own if subject.operation is not None]
    dtypes = {
        operation: tuple(
            dict.fromkeys(d for s in own if s.operation == operation for d in s.dtypes)
        )
        for operation in dict.fromkeys(subject.operation for subject in own)
    }
    names = {subject.name for subject in own}
    further = [subject for subject in config.subjects if subject.name not in names]
    if Path(config.path).resolve() != CORPUS_CONFIG.resolve():
        further += [
            msgspec.structs.replace(subject, name=CORPUS + subject.name)
            for subject in load_config(CORPUS_CONFIG).subjects
        ]
    every = [
        *own,
        *(
            msgspec.structs.replace(subject, dtypes=dtypes[subject.operation])
            for subject in further
            if subject.operation in dtypes
        ),
    ]
    for operation in dtypes:
        assert operation is not None
        # Whether one of the team's own shows its dtype is seen when it runs.
        if ":" in operation or has_dtype(resolve_operation(operation)):
            like = next(subject for subject in every if subject.operation == operation)
            every.append(_torch(like, operation, dtypes[operation]))
    return tuple(every)


def _torch(like: Subject, operation: str, dtypes: tuple[str, ...]) -> Subject:
    """torch's own result on the cases of a kernel; no lower-precision step is forgiven it."""
    return msgspec.structs.replace(
        like,
        name=TORCH + operation.replace(":", "."),
        entry=ENTRY + operation,
        dtypes=dtypes,
        kernels=(),
        intermediate=None,
    )


def collecting_gate(model: Model, strategy: str, root: str) -> GateRef:
    """The oracle that makes the records; under its usual settings it is the oracle itself, so
    that a matrix run and a calibration have verdicts in common."""
    if strategy == "certify" and model.collecting == _STRICT:
        return GateRef("oracle", root)
    settings = OracleSettings(strategy, as_table(model.collecting))
    return GateRef("oracle-calibrate", root, oracle=settings)


def collect(
    plan: Plan, model: Model, seeds: Sequence[int], record: RunRecord, progress: Progress
) -> Collected:
    """Run all controls of the plan's subjects under every seed, or take them from the store.

    Raises:
        EnvironmentFailure: a control gave no verdict.
    """
    # Torch has not every formula in every dtype.
    torchs = [subject.name for subject in plan.subjects if subject.entry.startswith(ENTRY)]
    controls = run_controls(plan, seeds, record, progress, observe=True, optional=torchs)
    failed = [row for row in controls.rows if row.outcome not in _ANSWERS]
    if failed:
        row = failed[0]
        raise EnvironmentFailure(f"{row.control} under seed {row.seed}: {row.detail}")
    operations = {subject.name: subject.operation or "" for subject in plan.subjects}
    runs = tuple(_runs_of(controls, operations, model, record))
    cases = sorted({run.case.id for run in runs})
    digest = hashlib.sha256("\n".join(cases).encode()).hexdigest()
    return Collected(runs, controls.sources_sha256, digest)


_ANSWERS = (GateOutcome.ACCEPTED, GateOutcome.REJECTED)


def _runs_of(
    controls: ControlsRecord, operations: dict[str, str], model: Model, record: RunRecord
) -> Iterator[Run]:
    kernels = {row.control: row.subject for row in controls.rows}
    for verdict, observed in record.observed():
        kernel = kernels[verdict.candidate]
        for cell in unpack_cells(observed):
            case = parse_case(cell.case.partition(" ")[0])
            yield _run_of(verdict, kernel, case, cell, model)


def _run_of(verdict: Verdict, kernel: str, case: Case, cell: Cell, model: Model) -> Run:
    seen = [one for sight in (cell.run, *cell.again) for one in _judged(sight)]
    laws = [one.interval for one in seen if one.interval is not None]
    return Run(
        operation=case.operation,
        kernel=kernel,
        control=verdict.candidate,
        case=case,
        need=max((model.need(one, case.dtype) for one in seen if one.interval), default=0.0),
        elements=sum(sum(map(sum, one.table)) for one in _judged(cell.run)),
        law=max(laws, key=lambda law: law.middle_weight, default=None),
        beyond=_beyond(cell, seen) or _rejected(verdict, case, model),
    )


def _judged(sight: Sight) -> Iterable[Observation]:
    """Outputs against the reference as it is, not as rounded."""
    return (one for one in sight.outputs if not one.rounded_reference)


def _beyond(cell: Cell, seen: Sequence[Observation]) -> str:
    guards = [sight.guard for sight in (cell.run, *cell.again) if sight.guard is not Reason.NONE]
    if guards:
        return f"guard: {guards[0].value}"
    for one in seen:
        if not judge_observation(_STRICT, one).passed:
            if one.interval is None:
                return f"{one.output} is not equal to its reference"
            contraction = one.interval.contraction
            limit = _STRICT.contraction_constant if contraction else _STRICT.constant
            return f"{one.output} is {one.interval.score:.3g} units off, and may be {limit:g}"
    return ""


def _rejected(verdict: Verdict, case: Case, model: Model) -> str:
    """What else the oracle had against the case that decided: it may ask for equality."""
    rejected = verdict.outcome is GateOutcome.REJECTED and verdict.case == case.id
    return verdict.detail if rejected and model.collecting == _STRICT else ""
