"""The process that shrinks a failing case: it forks a child per run and tells what it finds."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from gatecert.cli.minimising import Better, Ended, Event, Minimised, MinimiseRequest, Step
from gatecert.cli.replay import LIMIT_S, ReplayAnswer
from gatecert.cli.replay_child import case_of, judge_case, operation_of, serve
from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.mutants.records import Candidate, CandidateKind, original
from gatecert.oracle.case import Case
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.minimise import (
    Budget,
    BudgetSpent,
    Search,
    Space,
    shrink_structure,
    untried_sizes,
)
from gatecert.oracle.minimise_values import shrink_values, written_out
from gatecert.oracle.schema import Operation
from gatecert.oracle.snapshot import save_snapshot
from gatecert.processes import die_with_parent, end_children
from gatecert.sandbox.child import ChildEnd, run_in_child

_LONGEST_ID = 2000
"""Longer ids become snapshots: no shell or report wants them."""
_LEAST_LIMIT_S, _LIMIT_FACTOR = 30.0, 10.0
"""A run hangs when it takes ten times as long as the first, and this long at least."""
_MEMORY_BYTES = 8 << 30
_PREFIX = re.compile(r"(under autotune configuration \d+: )?(with programs \w+: )?(\w+)?")


@dataclass(frozen=True, slots=True)
class Run:
    """One run in a child: its answer if it gave one, why it failed if it did, what was said."""

    answer: ReplayAnswer | None
    failure: str
    said: str
    seconds: float


class Runs:
    """Runs cases of one request, each in a fresh forked child."""

    def __init__(self, request: MinimiseRequest, operation: Operation) -> None:
        self._request = request
        self._operation = operation
        self.answers: dict[str, ReplayAnswer] = {}
        self.limit_s = LIMIT_S
        self.kept = ""

    def first(self, case: Case) -> None:
        """The run whose reason is to be kept; later ones are held to its time.

        Raises:
            UsageError: the case does not fail, so there is nothing to shrink.
            EnvironmentFailure: the original fails on it too, or nothing ran.
        """
        run = self.run(case, self._request.candidate)
        if not run.failure:
            said = run.said or "the candidate is accepted on this case: there is nothing to shrink"
            raise UsageError(said)
        if run.answer is not None:
            self.answers[case.id] = run.answer
        if not self._original_passes(case):
            raise EnvironmentFailure("the original fails on this case too: replay it on that one")
        self.kept = run.failure
        self.limit_s = max(_LEAST_LIMIT_S, _LIMIT_FACTOR * run.seconds)
        if run.failure == "timeout":
            self.limit_s = _LEAST_LIMIT_S

    def fails(self, case: Case) -> bool:
        """Whether it fails for the reason kept, and the original does not fail at all."""
        run = self.run(case, self._request.candidate)
        if run.failure != self.kept or not self._original_passes(case):
            return False
        if run.answer is not None:
            self.answers[case.id] = run.answer
        return True

    def _original_passes(self, case: Case) -> bool:
        if self._request.candidate.kind is CandidateKind.ORIGINAL:
            return True
        run = self.run(case, original(self._request.subject.name))
        return run.answer is not None and run.answer.verdict.outcome is GateOutcome.ACCEPTED

    def run(self, case: Case, candidate: Candidate) -> Run:
        """Judge the candidate on a case."""
        _, held = case_of(self._request)

        def work() -> bytes:
            tensors = {} if case.given else held
            answer = judge_case(self._operation, case, self._request.subject, candidate, tensors)
            return msgspec.json.encode(answer)

        result = run_in_child(work, timeout_s=self.limit_s, memory_bytes=_MEMORY_BYTES)
        if result.end is ChildEnd.ANSWERED:
            answer = msgspec.json.decode(result.answer, type=ReplayAnswer)
            return Run(answer, failure_of(answer.verdict), answer.verdict.detail, result.seconds)
        lines = result.log.strip().splitlines()
        said = lines[-1] if lines else ""
        failure = ""
        if result.end is ChildEnd.TIMEOUT:
            failure = "timeout"
        elif not result.raised:
            failure = f"died of signal {result.signal}" if result.signal else "left by itself"
        return Run(None, failure, said, result.seconds)


def failure_of(verdict: Verdict) -> str:
    """What kind of failure it is, in words that two cases with one cause share; "" if none."""
    if verdict.outcome is GateOutcome.ERROR:
        # The original raised: `case: Type: message`.
        parts = verdict.detail.split(": ")
        return f"no verdict ({parts[1]})" if len(parts) > 2 else "no verdict"
    if verdict.outcome is not GateOutcome.REJECTED:
        return ""
    _, order, word = _PREFIX.match(verdict.detail).groups()  # type: ignore[union-attr]
    kind = verdict.reason.value
    if verdict.reason is Reason.RAISED:
        kind += f" ({word})"
    elif verdict.reason is Reason.BOUNDS:
        found = verdict.findings[0]
        kind += f" ({found.kind.value} on {found.argument} of {found.kernel.partition(':')[2]})"
    return f"{kind}, with programs in another order" if order else kind


def main() -> NoReturn:
    """Serve one request, and leave."""
    die_with_parent()
    signal.signal(signal.SIGTERM, _leave)
    code = serve(MinimiseRequest, _minimise)
    # Libraries that are torn down would have the last words on stderr.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    end_children()
    sys.exit(1)


def _minimise(request: MinimiseRequest) -> Ended:
    operation = operation_of(request)
    # Triton imports it at the first launch: half the time of a child that launches little.
    with contextlib.suppress(ImportError):
        importlib.import_module("triton.experimental.gluon")
    gc.freeze()
    start, held = case_of(request)
    if held and not start.given:
        # Values of a snapshot are no recipe's: they are written out from the beginning.
        start = written_out(operation, start, held)
    began = time.monotonic()
    runs = Runs(request, operation)
    runs.first(start)
    budget = Budget(request.budget_runs, request.budget_s)
    space = Space(operation, request.subject.dtypes, request.subject.dims)

    def found(case: Case) -> Minimised:
        answer = runs.answers.get(case.id) or _no_answer(request, case, runs.kept)
        spent_s = time.monotonic() - began
        return Minimised(start.id, case.id, runs.kept, answer, budget.used, spent_s)

    def watched(case: Case) -> bool:
        _say(Step(budget.used))
        failed = runs.fails(case)
        if failed:
            _say(Better(found(case)))
        return failed

    _say(Better(found(start)))
    search = Search(start, watched, budget)
    shaped = start
    complete = True
    try:
        shrink_structure(search, space)
        shaped = search.best
        shrink_values(search, operation)
        shrink_structure(search, space)
    except BudgetSpent:
        complete = False
        shaped = shaped if search.best.given else search.best
    untried = {} if start.given else untried_sizes(search, space, shaped)
    ended = msgspec.structs.replace(found(search.best), complete=complete, untried=untried)
    if len(search.best.id) > _LONGEST_ID or request.save:
        ended = _saved(ended, operation, search.best, request.save)
    return Ended(ended)


def _saved(ended: Minimised, operation: Operation, case: Case, path: str) -> Minimised:
    inputs = make_inputs(operation, case)
    path = path or f"gatecert-case-{inputs.sha256[:12]}.safetensors"
    plain = msgspec.structs.replace(case, given=())
    save_snapshot(Path(path), plain, inputs)
    shown = plain if len(case.id) > _LONGEST_ID else case
    return msgspec.structs.replace(ended, case=shown.id, snapshot=path)


def _no_answer(request: MinimiseRequest, case: Case, failure: str) -> ReplayAnswer:
    """Of a run that gave none: it hung or died."""
    outcome = GateOutcome.TIMEOUT if failure == "timeout" else GateOutcome.CRASHED
    verdict = Verdict(request.candidate.id, "oracle", outcome, detail=failure, case=case.id)
    return ReplayAnswer(verdict, "")


def _say(event: Event) -> None:
    print(msgspec.json.encode(event).decode(), flush=True)


if __name__ == "__main__":
    main()
