"""Hunt for witnesses of many mutants, spread over servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.records import Status
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.selection import select
from gatecert.campaign.shards import candidate_of
from gatecert.campaign.supervise import ServerPool, error_of, server_pool, spread
from gatecert.errors import EnvironmentFailure, InternalError, UsageError
from gatecert.mutants.records import Mutant
from gatecert.sandbox.protocol import Failed, Hunted, HuntRequest
from gatecert.witness.records import Hunt, HuntBudget

if TYPE_CHECKING:
    from gatecert.certificate import Certificate


def run_hunts(plan: Plan, budget: HuntBudget, progress: Progress) -> Iterator[tuple[Mutant, Hunt]]:
    """A hunt outside the cases of the plan's first gate for each mutant that `only` names, as
    they end.

    Raises:
        UsageError: a subject has no operation, or the gate no cases for it.
        EnvironmentFailure: a subject cannot run.
    """
    with server_pool(plan.jobs) as pool:
        planned, _ = select(plan, plan_campaign(plan, pool, progress))
        work = [(subject, mutant) for subject in planned for mutant in subject.run.mutants]
        for subject, _ in work:
            _check(subject)
        requests = [(mutant, _request(plan, subject, mutant, budget)) for subject, mutant in work]
        progress.stage("hunt", len(requests))

        def one(item: tuple[Mutant, HuntRequest]) -> tuple[Mutant, Hunt]:
            mutant, request = item
            return mutant, _asked(pool, request)

        for found in spread(pool, one, requests):
            progress.step()
            yield found


def survivors_of(certificate: Certificate, gate: str) -> tuple[str, ...]:
    """The mutants that survived the gate there.

    Raises:
        UsageError: it did not judge there.
    """
    results = certificate.results
    if not any(gate in said for said in results.values()):
        raise UsageError(f"gate {gate!r} judged no mutant in this certificate: name one that did")
    return tuple(
        mutant
        for mutant, said in results.items()
        if gate in said and said[gate].status is Status.SURVIVED
    )


def _check(subject: PlannedSubject) -> None:
    if subject.run.failed:
        raise EnvironmentFailure(subject.run.failed)
    if subject.run.subject.operation is None:
        raise UsageError(
            f"subject {subject.run.subject.name!r} has no operation, so there is no domain to hunt "
            "in; give it one"
        )


def _request(
    plan: Plan, subject: PlannedSubject, mutant: Mutant, budget: HuntBudget
) -> HuntRequest:
    return HuntRequest(
        subject=subject.run.subject,
        gate=plan.gates[0],
        candidate=candidate_of(mutant, subject.texts),
        observable_by=mutant.observable_by,
        budget=budget,
        preload=subject.preload,
        seed=plan.seed,
        quick=plan.quick,
    )


def _asked(pool: ServerPool, request: HuntRequest) -> Hunt:
    with pool.lent() as server:
        events: Sequence[object] = list(server.ask(request))
    for event in events:
        if isinstance(event, Failed):
            raise error_of(event)
        if isinstance(event, Hunted):
            return event.hunt
    raise InternalError(f"the hunt of {request.candidate.id} ended without an answer")
