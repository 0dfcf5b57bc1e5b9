"""A hunt as the sandbox's server runs it: the gate's own cases, the domain, then the search."""

from __future__ import annotations

import sys
import time

from gatecert.errors import UsageError
from gatecert.gates.base import CaseGate
from gatecert.gates.registry import make_gate
from gatecert.mutants.overlay import note_imports
from gatecert.mutants.records import original
from gatecert.operators.records import ObservableBy
from gatecert.oracle.case import Case
from gatecert.oracle.operations import resolve_operation
from gatecert.sandbox.imports import forget_user_modules
from gatecert.sandbox.protocol import HuntRequest
from gatecert.witness.hunt import Hunting
from gatecert.witness.records import Hunt
from gatecert.witness.runs import Runs
from gatecert.witness.search import Search
from gatecert.witness.space import space_of

_SHOWN_BY_RUNS = frozenset({ObservableBy.REPEAT, ObservableBy.RACE})


def hunt(request: HuntRequest) -> Hunt:
    """Hunt outside the cases of the request's gate.

    Raises:
        UsageError: the gate has no cases for the subject.
    """
    before = set(sys.modules)
    began = time.monotonic()
    subject, gate = request.subject, request.gate
    made = make_gate(gate.name, gate.config, gate.root, gate.around, gate.oracle)
    operation = resolve_operation(subject.operation or "")
    own: tuple[Case, ...] = ()
    if isinstance(made, CaseGate):
        own = made.cases(subject, seed=request.seed, quick=request.quick)
    if not own:
        raise UsageError(
            f"gate {gate.name!r} has no cases for subject {subject.name!r}: a hunt needs some to "
            "start from"
        )
    forget_user_modules(before, request.candidate.files)
    note_imports()
    by_runs = not _SHOWN_BY_RUNS.isdisjoint(request.observable_by)
    search = Search(
        space_of(operation, subject, own, request.seed),
        own,
        request.candidate.reveal,
        request.seed,
        runs=by_runs or subject.configs != 1,
    )
    runs = Runs(
        subject,
        operation,
        original(subject.name),
        request.candidate,
        request.limits.memory_bytes,
        whole=by_runs,
    )
    hunting = Hunting(operation, subject, own, search, runs, request.budget)
    found = hunting.run()
    seconds = round(time.monotonic() - began, 3)
    return Hunt(request.candidate.id, gate.name, request.seed, len(own), found, seconds)
