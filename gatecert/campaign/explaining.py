"""Measure why the chosen gate's survivors survived; no verdict depends on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.records import LANE_SHOWS, Status
from gatecert.campaign.shards import candidate_of, request_of
from gatecert.campaign.supervise import ServerPool, error_of, server_pool, spread
from gatecert.certificate.status import status_of
from gatecert.diagnosis.records import Evidence
from gatecert.errors import GatecertError
from gatecert.gates.records import Verdict
from gatecert.mutants.records import CodeComparison, Mutant
from gatecert.sandbox.protocol import Explained, ExplainRequest, Failed
from gatecert.store import RunRecord
from gatecert.store.keys import content_key
from gatecert.witness.records import HuntBudget
from gatecert.wording import count

Keys = Mapping[tuple[str, str], str]
"""The keys of verdicts, by candidate and gate."""


@dataclass(frozen=True, slots=True)
class Explaining:
    """What explanations need of a run that was judged."""

    plan: Plan
    record: RunRecord
    progress: Progress
    keys: Keys
    budget: HuntBudget

    def run(
        self,
        pool: ServerPool,
        planned: Iterable[PlannedSubject],
        comparisons: Mapping[str, Mapping[str, CodeComparison]],
        verdicts: Mapping[str, Iterable[Verdict]],
    ) -> None:
        """Explain every survivor that the store has no explanation of; keeps them one by one, so
        that an interrupted run goes on."""
        gate = self.plan.gates[0]
        if gate.runs_compiled:
            self.progress.say(f"gate {gate.name!r} runs on a GPU: its survivors are not explained")
            return
        requests: list[ExplainRequest] = []
        known = 0
        for subject in planned:
            name = subject.run.subject.name
            said = {v.candidate: v for v in verdicts.get(name, ()) if v.gate == gate.name}
            survivors = self._survivors(subject, comparisons.get(name, {}), said)
            missing = [
                mutant for mutant in survivors if not self.record.explained(self._key(mutant.id))
            ]
            known += len(survivors) - len(missing)
            requests += self._requests(subject, missing)
        if known:
            self.progress.say(f"{count(known, 'explanation')} taken from the store")
        self.progress.stage("explain survivors", sum(len(r.candidates) for r in requests))
        for trouble in spread(pool, lambda request: self._ask(pool, request), requests):
            if trouble:
                self.progress.say(f"survivors are not explained: {trouble}")

    def _survivors(
        self,
        subject: PlannedSubject,
        comparisons: Mapping[str, CodeComparison],
        verdicts: Mapping[str, Verdict],
    ) -> list[Mutant]:
        shows = LANE_SHOWS[self.plan.lane_of(self.plan.gates[0])]
        ignored = {one.mutant for one in subject.run.ignored}
        return [
            mutant
            for mutant in subject.run.mutants
            if mutant.scored
            and mutant.id not in ignored
            and status_of(mutant, comparisons.get(mutant.id), verdicts.get(mutant.id), shows)
            is Status.SURVIVED
        ]

    def _requests(
        self, subject: PlannedSubject, mutants: Sequence[Mutant]
    ) -> Iterator[ExplainRequest]:
        """The mutants of a subject, cut into as many parts as there are jobs: each runs the gate
        once."""
        if not mutants:
            return
        base = request_of(self.plan, subject, ())
        size = -(-len(mutants) // self.plan.jobs)
        gate = self.plan.gates[0]
        for start in range(0, len(mutants), size):
            yield ExplainRequest(
                subject=base.subject,
                gate=gate,
                candidates=tuple(
                    candidate_of(mutant, subject.texts) for mutant in mutants[start : start + size]
                ),
                budget=self.budget,
                preload=base.preload,
                seed=base.seed,
                quick=base.quick,
                limits=base.limits,
                baselines={
                    name: one for name, one in subject.baselines.items() if name == gate.name
                },
                modules=base.modules,
                kernels=base.kernels,
            )

    def _ask(self, pool: ServerPool, request: ExplainRequest) -> str:
        """Ask for a request's explanations and keep them; gives why there are none, or ""."""
        keys = {one.id: self._key(one.id) for one in request.candidates}
        try:
            with pool.lent() as server:
                for event in server.ask(request):
                    if isinstance(event, Failed):
                        raise error_of(event)
                    if isinstance(event, Explained):
                        evidence = without_seconds(event.evidence)
                        self.record.keep_explanation(keys[evidence.mutant], evidence)
                        self.progress.step()
        except GatecertError as error:
            return f"subject {request.subject.name!r}: {error}"
        return ""

    def _key(self, mutant: str) -> str:
        verdict = self.keys[mutant, self.plan.gates[0].name]
        return content_key("explanation", verdict, self.budget)


def explain_survivors(
    plan: Plan,
    planned: Sequence[PlannedSubject],
    verdicts: Mapping[str, Sequence[Verdict]],
    keys: Keys,
    record: RunRecord,
    progress: Progress,
) -> bool:
    """Explain the survivors of the plan's first gate; True where that was interrupted."""
    assert plan.explain is not None
    comparisons = {
        part.subject.name: {one.mutant: one for one in part.comparisons}
        for part in record.run().subjects
    }
    explaining = Explaining(plan, record, progress, keys, plan.explain)
    try:
        with server_pool(plan.jobs, plan.libraries) as pool:
            explaining.run(pool, planned, comparisons, verdicts)
    except KeyboardInterrupt:
        return True
    return False


def without_seconds(evidence: Evidence) -> Evidence:
    """What is the same in a repeat: certificates of equal runs are equal."""
    hunt = evidence.hunt
    if hunt is not None:
        hunt = msgspec.structs.replace(hunt, seconds=0.0)
    return msgspec.structs.replace(evidence, hunt=hunt, seconds=0.0)
