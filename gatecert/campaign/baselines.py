"""The team's gates on the original, before any mutant runs: once for the whole run.

Of a pytest suite every request of the run gets the same answer, so that no verdict depends on
which request, job or session it belongs to. It is kept with the original's verdict, under that
verdict's key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.shards import Work, request_of
from gatecert.campaign.supervise import ServerPool, ask_shard, spread
from gatecert.gates.records import Verdict
from gatecert.gates.suite.records import PytestBaseline
from gatecert.mutants.records import CandidateKind
from gatecert.sandbox.protocol import Prepared, Task
from gatecert.store import RunRecord
from gatecert.store.keys import verdict_key


def with_baselines(
    plan: Plan,
    work: Work,
    marks: Mapping[str, str],
    pool: ServerPool,
    record: RunRecord,
    progress: Progress,
    on_prepared: Callable[[Prepared], None],
    on_judged: Callable[[Verdict], None],
) -> Work:
    """The work with the baselines of its suites; what is in the store is taken from there.

    Raises:
        ControlRejected: a command rejects the original.
        EnvironmentFailure: a suite does not pass on it, or a gate does not always say the same.
        NothingScored: it runs no test there.
        UsageError: it cannot be started as it is configured.
    """
    teams = {ref.name for ref in plan.gates if ref.config is not None}
    originals = [
        (subject, task)
        for subject, tasks in work
        for task in tasks
        if task.gate in teams and task.candidate.kind is CandidateKind.ORIGINAL
    ]
    if not originals:
        return work
    progress.stage("gates on the original", len(originals))

    def one(item: tuple[PlannedSubject, Task]) -> tuple[str, str, PytestBaseline | None]:
        subject, task = item
        request = request_of(plan, subject, [task])
        key = verdict_key(request, task, marks[task.gate] + subject.sources_sha256)
        place = task.candidate.id, task.gate
        said = ask_shard(
            pool,
            request,
            record,
            {place: key},
            on_verdict=lambda _: progress.step(),
            on_prepared=on_prepared,
            on_judged=on_judged,
        )
        return subject.run.subject.name, task.gate, said[0].baseline if said else None

    found: dict[str, dict[str, PytestBaseline]] = {}
    for name, gate, baseline in spread(pool, one, originals):
        if baseline is not None:
            found.setdefault(name, {})[gate] = baseline
    return [
        (replace(subject, baselines=found.get(subject.run.subject.name, {})), tasks)
        for subject, tasks in work
    ]
