"""A team's own tests as a gate.

Forks of a warm server belong to the interpreter: a process that has used a GPU cannot be forked,
so that on CUDA every candidate needs a fresh process, and its seconds of imports. Which tests
judge, and what their session means, is the same on both.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.gates.base import Gate
from gatecert.gates.command.elsewhere import Elsewhere, GateElsewhere
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.suite.device import WITHOUT_GPU
from gatecert.gates.suite.records import PytestBaseline
from gatecert.gates.suite.selection import (
    Choice,
    all_reliable,
    chosen_for,
    owned_tests,
    under_known_names,
    why_unknown,
    why_unreached,
)
from gatecert.lanes.cuda.gpu import check_gpu
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.subjects import Subject

if TYPE_CHECKING:
    from gatecert.gates.suite.baseline import Suite
    from gatecert.gates.suite.request import SessionRequest

_WATCHED = frozenset({CandidateKind.ORIGINAL, CandidateKind.ADVERSARY})
_FLAGS = frozenset("qvxsl")
"""Short options of pytest that take no value, and may be joined."""


@dataclass(frozen=True, slots=True)
class PytestGate:
    """`pytest *args`, run in `rootdir`; on the original `runs` times, unless the baseline is
    `known` already. Each candidate runs in a fork of a warm server, or in a `fresh` process, which
    does `interpret` kernels or compiles them for a GPU. `modules` maps modules with mutants to
    their files; `kernels` are the subject's, as far as the run knows them.

    Raises:
        UsageError: there is no such folder, or no such file as the arguments name.
    """

    name: str
    args: tuple[str, ...]
    rootdir: Path
    runs: int = 3
    fresh: bool = False
    interpret: bool = True
    known: PytestBaseline | None = None
    modules: Mapping[str, str] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.rootdir.is_dir():
            raise UsageError(f"gate {self.name!r}: rootdir {self.rootdir} is not a folder")
        for named in _paths_in(self.args):
            if not (self.rootdir / named).exists():
                raise UsageError(
                    f"gate {self.name!r}: args name {named!r}, and there is no such file in "
                    f"{self.rootdir}{_nearest(named, self.rootdir)}"
                )

    def applies_to(self, subject: Subject) -> str | None:
        """Whether tests reach a subject is seen from what they launch, not from here."""
        return None

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedPytest:
        """Run the tests on the original in throw-away processes, unless that was done, and
        import here what forks will import from libraries. Seed and `quick` are the tests' own
        affair.

        Raises:
            UsageError: the arguments are wrong, or select no test.
            EnvironmentFailure: pytest or a GPU is missing, or the tests do not pass on the
                original.
            NothingScored: no test runs.
        """
        check_pytest(self.name)
        if not self.interpret:
            check_gpu(self.name, WITHOUT_GPU)
        # Once here, not in every child.
        from gatecert.gates.suite.baseline import Suite, measure_baseline, warm_up_for

        if self.known is not None:
            warm_up_for(self.known)
        suite = Suite(self.name, self.args, self.rootdir, self.fresh, self.interpret)
        baseline = self.known or measure_baseline(suite, subject, self.runs)
        baseline = under_known_names(baseline, self.modules)
        prepared = PreparedFresh if self.fresh else PreparedPytest
        return prepared(suite, subject, baseline, self.kernels)


@dataclass(frozen=True, slots=True)
class PreparedPytest:
    """The tests and what they do on the original; each candidate is judged in a fork."""

    suite: Suite
    subject: Subject
    baseline: PytestBaseline
    kernels: tuple[str, ...] = ()
    _settled: dict[str, Choice] = field(default_factory=dict)
    """By the key of the tests that a candidate asks for, those that judge it."""

    def settle(self, candidate: Candidate) -> None:
        """Judge nobody by tests that have not held on the original without the others: where
        they do not, all that can be relied on judge in their place."""
        from gatecert.gates.suite.baseline import holds_on_original

        wanted = chosen_for(candidate, self.baseline)
        if wanted.key in self._settled or wanted.key in self.baseline.proven:
            return
        holds = holds_on_original(self.suite, self.subject, wanted, self.baseline)
        self._settled[wanted.key] = wanted if holds else all_reliable(self.baseline)

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """Run the tests that can notice the candidate; the verdict is in their reports, not in
        the exit status. The original and adversaries are watched while they run."""
        from gatecert.gates.suite.session import run_session, verdict_of

        session = run_session(self.asked_of(candidate, stop_at_first=stop_at_first))
        return verdict_of(session, candidate.id, self.suite.gate)

    def asked_of(self, candidate: Candidate, *, stop_at_first: bool) -> SessionRequest:
        """The session that judges a candidate."""
        from gatecert.gates.suite.request import SessionRequest

        wanted = chosen_for(candidate, self.baseline)
        return SessionRequest(
            self.suite.args,
            str(self.suite.rootdir),
            stop_at_first=stop_at_first,
            choice=self._settled.get(wanted.key, wanted),
            watched=candidate.kind in _WATCHED,
            entry=self.subject.entry,
            tests=owned_tests(self.kernels, self.baseline),
            # An adversary may look for what was freed.
            repeatable=candidate.kind is not CandidateKind.ADVERSARY,
        )

    def without_running(self, candidate: Candidate) -> Verdict | None:
        """The acceptance of a candidate whose kernels no test launches; of a mutant that may be
        tested out of sight nothing is known."""
        why = why_unreached(candidate, self.baseline)
        if not why:
            return None
        verdict = Verdict(candidate.id, self.suite.gate, GateOutcome.ACCEPTED, detail=why)
        if candidate.kind is not CandidateKind.MUTANT:
            return verdict
        doubt = why_unknown(candidate, self.baseline)
        if not doubt:
            return verdict
        detail = f"{why} in sight; {doubt}"
        return msgspec.structs.replace(verdict, outcome=GateOutcome.ERROR, detail=detail)


@dataclass(frozen=True, slots=True)
class PreparedFresh(GateElsewhere, PreparedPytest):
    """The same, each candidate judged in a process of its own."""

    def run_elsewhere(
        self, candidate: Candidate, files: Mapping[str, str], *, stop_at_first: bool
    ) -> tuple[Verdict, Elsewhere]:
        """Run the tests that can notice the candidate in a fresh process, overlaid by `files`."""
        from gatecert.gates.suite.fresh import run_fresh
        from gatecert.gates.suite.session import verdict_of

        asked = self.asked_of(candidate, stop_at_first=stop_at_first)
        paths, interpret = self.subject.import_paths, self.suite.interpret
        run = run_fresh(asked, files, paths, interpret=interpret)
        if run.session is not None:
            verdict = verdict_of(run.session, candidate.id, self.suite.gate)
            if verdict.outcome is GateOutcome.ACCEPTED and run.seen.failures:
                # Caught by the launcher, or in a process that a test started.
                said = run.seen.failures[0]
                verdict = msgspec.structs.replace(verdict, outcome=GateOutcome.ERROR, detail=said)
            return verdict, run.seen
        verdict = Verdict(
            candidate.id,
            self.suite.gate,
            # An error of ours says nothing; else the tests ended their process.
            GateOutcome.ERROR if run.failed else GateOutcome.CRASHED,
            detail=run.how_it_ended,
            signal=run.signal,
        )
        return verdict, run.seen


def check_pytest(gate: str) -> None:
    """Raise an `EnvironmentFailure` where pytest is missing: gatecert itself does without."""
    if importlib.util.find_spec("pytest") is None:
        raise EnvironmentFailure(f"gate {gate!r} needs pytest: pip install pytest")


def with_baseline(
    gate: Gate,
    known: PytestBaseline | None,
    modules: Mapping[str, str],
    kernels: tuple[str, ...] = (),
) -> Gate:
    """The gate with what the run knows: its baseline, if it was measured, the names by which
    mutants call their kernels, and the kernels of the subject."""
    if not isinstance(gate, PytestGate):
        return gate
    return replace(gate, known=known, modules=modules, kernels=kernels)


def _paths_in(args: Sequence[str]) -> Iterator[str]:
    """Arguments that can only be paths. What follows an option may be its value, so it is left
    to pytest."""
    if "--pyargs" in args:
        return
    for before, arg in zip(("", *args), args, strict=False):
        follows_flags = not before.startswith("-") or "=" in before or _is_flags(before)
        if follows_flags and not arg.startswith(("-", "@")):
            yield arg.partition("::")[0]


def _is_flags(arg: str) -> bool:
    return not arg.startswith("--") and _FLAGS.issuperset(arg[1:])


def _nearest(named: str, rootdir: Path) -> str:
    path = PurePath(named)
    folder = rootdir / path.parent
    siblings = sorted(sibling.name for sibling in folder.iterdir()) if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, siblings, n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""
