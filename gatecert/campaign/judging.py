"""Judge requests that are no campaign of their own: controls under many seeds, detection limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gatecert.campaign.gate_files import gate_roots
from gatecert.campaign.plan import Plan
from gatecert.campaign.progress import Progress
from gatecert.campaign.shards import timeouts_alone
from gatecert.campaign.supervise import ServerPool, ask_shard, spread
from gatecert.gates.records import Verdict
from gatecert.sandbox.protocol import ShardRequest
from gatecert.store import RunRecord
from gatecert.store.keys import fingerprint, verdict_key
from gatecert.store.records import PlannedTask, Tasks


def mark_of(plan: Plan, record: RunRecord) -> str:
    """The fingerprint of gatecert and, if the gate is the user's, of the files that it may read and
    the GPU that it uses."""
    gate = plan.gates[0]
    tables = () if gate.config is None else (gate.config,)
    roots = gate_roots(plan.root, tables, plan.subjects) if tables else ()
    return fingerprint(roots, but=record.folder) + plan.gpu


def judge_requests(
    pool: ServerPool,
    requests: Sequence[ShardRequest],
    marks: Mapping[str, str],
    record: RunRecord,
    progress: Progress,
) -> Iterable[tuple[ShardRequest, tuple[Verdict, ...]]]:
    """All requests with their verdicts, as they come; what `record` holds is not judged again, and
    a timeout is tried once more with more time.

    `marks` are fingerprints by subject, of all that its verdicts depend on beside the request.
    """
    keyed = [
        tuple(
            PlannedTask(
                request.subject.name,
                task.candidate.id,
                task.gate,
                verdict_key(request, task, marks[request.subject.name]),
            )
            for task in request.tasks
        )
        for request in requests
    ]
    record.expect(Tasks(tuple(task for tasks in keyed for task in tasks)))

    def one(
        item: tuple[ShardRequest, tuple[PlannedTask, ...]],
    ) -> tuple[ShardRequest, tuple[Verdict, ...]]:
        request, tasks = item
        keys = {task.place: task.key for task in tasks}
        said = {
            (verdict.candidate, verdict.gate): verdict
            for verdict in ask_shard(
                pool,
                request,
                record,
                keys,
                on_verdict=progress.step,
                on_prepared=lambda _: None,
            )
        }
        for late in timeouts_alone([request], {request.subject.name: said}):
            for verdict in ask_shard(
                pool,
                late,
                record,
                keys,
                on_verdict=lambda _: None,
                on_prepared=lambda _: None,
            ):
                said[verdict.candidate, verdict.gate] = verdict
        return request, tuple(said.values())

    return spread(pool, one, list(zip(requests, keyed, strict=True)))
