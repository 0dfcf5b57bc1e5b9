"""Run the texts of a remedy once: each has to accept the original and to reject the mutant."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.shards import candidate_of, request_of
from gatecert.campaign.supervise import ServerPool, error_of
from gatecert.gates.config import GateConfig, OracleSettings
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import Mutant, original
from gatecert.oracle.case import parse_case
from gatecert.remedies.records import Form, Remedy, Text
from gatecert.remedies.texts import config_text, pytest_text, snippet_text
from gatecert.sandbox.protocol import Failed, GateRef, Judged, Task

_FILES = {Form.PYTEST: "test_remedy.py", Form.SNIPPET: "remedy.py"}
_KILLS = (GateOutcome.REJECTED, GateOutcome.CRASHED, GateOutcome.TIMEOUT)


def proven(
    plan: Plan, pool: ServerPool, subject: PlannedSubject, mutant: Mutant, witness: str, case: str
) -> Remedy:
    """The texts that add a case on which the mutant shows, each run on original and mutant."""
    texts = _texts(subject, mutant, case)
    with tempfile.TemporaryDirectory(prefix="gatecert-remedy-") as folder:
        gates = {form: _gate(form, text, case, Path(folder)) for form, text in texts.items()}
        said = _said(plan, pool, subject, mutant, tuple(gates.values()))
    return Remedy(
        mutant.id,
        witness,
        case,
        tuple(Text(form, text, *_proof(said[gates[form].name])) for form, text in texts.items()),
    )


def _texts(subject: PlannedSubject, mutant: Mutant, case: str) -> dict[Form, str]:
    judged = subject.run.subject
    found = {
        Form.CONFIG: config_text([case]),
        Form.PYTEST: pytest_text(judged, [case], f"A case on which {mutant.id} shows."),
    }
    snippet = snippet_text(judged, parse_case(case))
    return found if snippet is None else {**found, Form.SNIPPET: snippet}


def _gate(form: Form, text: str, case: str, folder: Path) -> GateRef:
    if form is Form.CONFIG:
        return GateRef("oracle-added", "", oracle=OracleSettings(cases=(case,)))
    own = folder / form.value
    own.mkdir()
    (own / _FILES[form]).write_text(text, encoding="utf-8")
    if form is Form.PYTEST:
        config = GateConfig("pytest", (_FILES[form],), baseline_runs=1)
    else:
        config = GateConfig("command", command=("python", _FILES[form]), baseline_runs=1)
    return GateRef(f"remedy-{form.value}", str(own), config)


def _said(
    plan: Plan,
    pool: ServerPool,
    subject: PlannedSubject,
    mutant: Mutant,
    gates: Sequence[GateRef],
) -> Mapping[str, tuple[Verdict, ...]]:
    """By gate, the verdicts on the original and on the mutant; a gate that fails has none."""
    candidates = (original(subject.run.subject.name), candidate_of(mutant, subject.texts))
    found: dict[str, tuple[Verdict, ...]] = {}
    for gate in gates:
        tasks = tuple(Task(one, gate.name) for one in candidates)
        request = msgspec.structs.replace(request_of(plan, subject, tasks), gates=(gate,))
        with pool.lent() as server:
            events = list(server.ask(request))
        found[gate.name] = tuple(_verdicts(events))
    return found


def _verdicts(events: Iterable[object]) -> list[Verdict]:
    found = []
    for event in events:
        if isinstance(event, Judged):
            found.append(event.verdict)
        elif isinstance(event, Failed):
            found.append(Verdict("", "", GateOutcome.ERROR, detail=str(error_of(event))))
    return found


def _proof(said: Sequence[Verdict]) -> tuple[bool, str]:
    """Whether it accepts the original and rejects the mutant; if not, what it said."""
    first, *rest = said
    if first.outcome is not GateOutcome.ACCEPTED:
        return False, f"on the original: {first.outcome.value}: {first.detail}"
    if not rest or rest[0].outcome not in _KILLS:
        seen = rest[0] if rest else first
        return False, f"on the mutant: {seen.outcome.value} {seen.detail}".rstrip()
    return True, ""
