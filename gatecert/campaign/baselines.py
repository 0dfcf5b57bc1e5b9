"""The team's gates on the original, before any mutant runs: once for the whole run.

Of a pytest suite every request of the run gets the same answer, so that no verdict depends on
which request, job or session it belongs to. It is kept with the original's verdict, under that
verdict's key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.shards import Work, request_of
from gatecert.campaign.supervise import ServerPool, ask_shard, spread
from gatecert.errors import ControlRejected, EnvironmentFailure, NothingScored
from gatecert.gates.reads import GateReads
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
) -> tuple[Plan, Work]:
    """The plan and the work with the baselines of its suites; what is in the store is taken from
    there. A gate that cannot judge is left out of both where it only stands beside another.

    Raises:
        ControlRejected: the certified gate is a command and rejects the original.
        EnvironmentFailure: it is a suite that does not pass on it, a function that raises there,
            or does not always say the same.
        NothingScored: it runs no test there.
        UsageError: a gate cannot be started as it is configured.
    """
    teams = {ref.name for ref in plan.gates if ref.config is not None}
    originals = [
        (subject, task)
        for subject, tasks in work
        for task in tasks
        if task.gate in teams and task.candidate.kind is CandidateKind.ORIGINAL
    ]
    if not originals:
        return plan, work
    progress.stage("gates on the original", len(originals))

    left_out: dict[str, str] = {}

    def one(item: tuple[PlannedSubject, Task]) -> tuple[str, str, Sequence[Verdict]]:
        subject, task = item
        request = request_of(plan, subject, [task])
        key = verdict_key(request, task, marks[task.gate] + subject.sources_sha256)
        place = task.candidate.id, task.gate
        try:
            said = ask_shard(
                pool,
                request,
                record,
                {place: key},
                on_verdict=lambda _: progress.step(),
                on_prepared=on_prepared,
                on_judged=on_judged,
            )
        except (ControlRejected, EnvironmentFailure, NothingScored) as error:
            if task.gate == plan.gates[0].name:
                raise
            left_out.setdefault(task.gate, str(error).partition("\n")[0])
            said = ()
        return subject.run.subject.name, task.gate, said

    found: dict[str, dict[str, PytestBaseline]] = {}
    reads: dict[str, dict[str, GateReads]] = {}
    for name, gate, said in spread(pool, one, originals):
        for verdict in said:
            if verdict.baseline is not None:
                found.setdefault(name, {})[gate] = verdict.baseline
            if verdict.reads is not None:
                reads.setdefault(name, {})[gate] = verdict.reads
    for gate in left_out:
        progress.say(f"gate {gate!r} is left out, which stands beside only: {left_out[gate]}")
    work = [
        (replace(subject, baselines=found.get(name, {}), reads=reads.get(name, {})), tasks)
        for subject, tasks in _without(work, left_out)
        for name in (subject.run.subject.name,)
    ]
    gates = tuple(ref for ref in plan.gates if ref.name not in left_out)
    return replace(plan, gates=gates, left_out=left_out), work


def _without(work: Work, gates: Iterable[str]) -> Work:
    """The tasks of all other gates."""
    left_out = frozenset(gates)
    return [
        (subject, [task for task in tasks if task.gate not in left_out]) for subject, tasks in work
    ]
