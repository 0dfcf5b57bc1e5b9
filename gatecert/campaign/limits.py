"""How small an error a gate sees: results that are too large by graded factors, dtype by dtype."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from gatecert.campaign.judging import judge_requests, mark_of
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.shards import applies, candidate_of, request_of
from gatecert.campaign.supervise import server_pool
from gatecert.errors import EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import Mutant, original
from gatecert.operators.scaled_result import ERRORS, OPERATOR, variant_of
from gatecert.sandbox.protocol import GateRef, ShardRequest, Task
from gatecert.store import RunRecord


class LimitRow(msgspec.Struct, frozen=True):
    """The detection limit of one subject in one dtype.

    `limit` is the smallest relative error such that it and all larger ones are rejected at every
    store of its kernels; None where some store has none. `store` is where errors are seen worst.
    `why` says why there is no limit. `lower_precision` is the dtype of a step that the subject
    declares to be less precise. `killed` holds by store the errors that were rejected.
    """

    subject: str
    operation: str
    dtype: str
    limit: float | None = None
    store: str = ""
    why: str = ""
    lower_precision: str = ""
    killed: dict[str, tuple[float, ...]] = {}


class LimitsRecord(msgspec.Struct, frozen=True):
    """The limits of one gate; `errors` are those that were planted."""

    gate: str
    seed: int
    errors: tuple[float, ...]
    rows: tuple[LimitRow, ...]

    def median(self, dtype: str) -> float | None:
        """Over the subjects that have a limit; a store without one counts as infinite."""
        found = [row for row in self.rows if row.dtype == dtype and not row.why]
        limits = [float("inf") if row.limit is None else row.limit for row in found]
        return statistics.median(limits) if limits else None


def run_limits(plan: Plan, record: RunRecord, progress: Progress) -> LimitsRecord:
    """Plant the factors into every store of every subject, and judge; goes on from `record`.

    Raises:
        EnvironmentFailure: a subject cannot run.
    """
    gate = plan.gates[0]
    mark = mark_of(plan, record)
    plan = replace(plan, operators=(OPERATOR,))
    with server_pool(plan.jobs, plan.libraries) as pool:
        planned = plan_campaign(plan, pool, progress)
        for subject in planned:
            if subject.run.failed:
                raise EnvironmentFailure(subject.run.failed)
        planned = tuple(subject for subject in planned if applies(gate, subject))
        reasons = {subject.run.subject.name: _why_not(subject) for subject in planned}
        marks = {s.run.subject.name: mark + s.sources_sha256 for s in planned}
        requests = [
            request
            for subject in planned
            if not reasons[subject.run.subject.name]
            for request in _requests(plan, gate, subject)
        ]
        progress.stage("detection limits", sum(len(one.tasks) for one in requests))
        by_name = {subject.run.subject.name: subject for subject in planned}
        judged = judge_requests(pool, requests, marks, record, progress)
        rows = [_row(request, by_name[request.subject.name], said) for request, said in judged]
    for name, why in reasons.items():
        if why:
            operation = by_name[name].run.subject.operation or ""
            rows.append(LimitRow(name, operation, "", why=why))
    order = {"float32": 0, "float16": 1, "bfloat16": 2}
    rows.sort(key=lambda row: (row.subject, order.get(row.dtype, 3)))
    return LimitsRecord(gate.name, plan.seed, ERRORS, tuple(rows))


def _why_not(subject: PlannedSubject) -> str:
    """Why no constant scales its result; "" where one may."""
    name = subject.run.subject.operation
    if name is not None:
        from gatecert.oracle.exact import Kind
        from gatecert.oracle.operations import resolve_operation

        operation = resolve_operation(name)
        if not any(spec.is_float for spec in operation.outputs):
            return "its result has no floating-point numbers"
        if operation.exact is not None and operation.exact.kind is Kind.SELECTING:
            return "it moves values and computes none"
    if not subject.run.mutants:
        return "no kernel stores what it computes"
    return ""


def _requests(plan: Plan, gate: GateRef, subject: PlannedSubject) -> Iterator[ShardRequest]:
    """One per dtype; a gate of the user's tries the dtypes that it tries."""
    first = original(subject.run.subject.name)
    tasks = [
        Task(first, gate.name, stop_at_first=False),
        *(Task(candidate_of(mutant, subject.texts), gate.name) for mutant in subject.run.mutants),
    ]
    request = request_of(plan, subject, tasks)
    if gate.config is not None:
        yield request
        return
    for dtype in subject.run.subject.dtypes:
        judged = msgspec.structs.replace(request.subject, dtypes=(dtype,))
        yield msgspec.structs.replace(request, subject=judged)


def _row(request: ShardRequest, subject: PlannedSubject, verdicts: Sequence[Verdict]) -> LimitRow:
    judged = request.subject
    dtypes = judged.dtypes if request.gates[0].config is None else ("",)
    row = LimitRow(
        judged.name, judged.operation or "", dtypes[0], lower_precision=judged.intermediate or ""
    )
    said = {verdict.candidate: verdict for verdict in verdicts}
    on_original = said[original(judged.name).id]
    if on_original.outcome is not GateOutcome.ACCEPTED:
        why = f"the gate does not accept the original: {on_original.detail}"
        return msgspec.structs.replace(row, why=why)
    killed = {
        store: tuple(error for error in ERRORS if _is_killed(rungs[variant_of(error)], said))
        for store, rungs in _by_store(subject.run.mutants).items()
    }
    limits = {store: _limit(errors) for store, errors in killed.items()}
    store = max(limits, key=lambda one: float("inf") if limits[one] is None else limits[one] or 0.0)
    return msgspec.structs.replace(row, limit=limits[store], store=store, killed=killed)


def _by_store(mutants: Sequence[Mutant]) -> dict[str, dict[str, Mutant]]:
    """The rungs of each store, by `kernel:line`."""
    found: dict[str, dict[str, Mutant]] = {}
    for mutant in mutants:
        found.setdefault(f"{mutant.kernel}:{mutant.line}", {})[mutant.variant] = mutant
    return found


def _is_killed(mutant: Mutant, said: dict[str, Verdict]) -> bool:
    verdict = said.get(mutant.id)
    return verdict is not None and verdict.loaded and verdict.outcome is GateOutcome.REJECTED


def _limit(killed: Sequence[float]) -> float | None:
    """The smallest error from which on all are killed."""
    limit = None
    for error in reversed(ERRORS):
        if error not in killed:
            break
        limit = error
    return limit
