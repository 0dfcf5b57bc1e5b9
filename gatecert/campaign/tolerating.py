"""Which tolerance parts a mutant from the controls of its subject, on a gate's own cases?"""

from __future__ import annotations

import msgspec

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.shards import candidate_of, request_of
from gatecert.campaign.supervise import ServerPool, error_of
from gatecert.gates.base import CaseGate
from gatecert.gates.cells import Cell, unpack_cells
from gatecert.gates.config import OracleSettings
from gatecert.gates.registry import make_gate
from gatecert.mutants.records import Mutant, original
from gatecert.remedies.records import Tolerance
from gatecert.remedies.tolerance import tolerances_of
from gatecert.sandbox.protocol import Failed, GateRef, Judged, Task


def parting_tolerances(
    plan: Plan, pool: ServerPool, subject: PlannedSubject, mutant: Mutant, gate: GateRef
) -> tuple[Tolerance, ...]:
    """By dtype; none where the gate's inputs are no cases.

    Raises:
        GatecertError: the server cannot run them.
    """
    made = make_gate(gate.name, gate.config, gate.root, gate.around, gate.oracle)
    if not isinstance(made, CaseGate):
        return ()
    own = made.cases(subject.run.subject, seed=plan.seed, quick=plan.quick)
    if not own:
        return ()
    oracle = GateRef("oracle-own", "", oracle=OracleSettings(cases=tuple(c.id for c in own)))
    controls = [original(subject.run.subject.name), *subject.run.controls]
    tasks = tuple(
        Task(one, oracle.name, stop_at_first=False, observe=True)
        for one in (*controls, candidate_of(mutant, subject.texts))
    )
    request = msgspec.structs.replace(request_of(plan, subject, tasks), gates=(oracle,))
    seen: dict[str, tuple[Cell, ...]] = {}
    with pool.lent() as server:
        for event in list(server.ask(request)):
            if isinstance(event, Failed):
                raise error_of(event)
            if isinstance(event, Judged):
                seen[event.verdict.candidate] = unpack_cells(event.observed)
    return tolerances_of([seen[one.id] for one in controls], seen[mutant.id])
