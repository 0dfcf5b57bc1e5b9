"""A team's own tests as a gate.

Forks of a warm server belong to the interpreter: a process that has used a GPU cannot be forked,
so that on CUDA every candidate would need a fresh process, and its seconds of imports.
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
from gatecert.gates.records import GateOutcome, Verdict
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
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.subjects import Subject

if TYPE_CHECKING:
    from gatecert.gates.suite.baseline import Suite

_WATCHED = frozenset({CandidateKind.ORIGINAL, CandidateKind.ADVERSARY})
_FLAGS = frozenset("qvxsl")
"""Short options of pytest that take no value, and may be joined."""


@dataclass(frozen=True, slots=True)
class PytestGate:
    """`pytest *args`, run in `rootdir`; on the original `runs` times, unless the baseline is
    `known` already. `modules` maps modules with mutants to their files; `kernels` are the
    subject's, as far as the run knows them.

    Raises:
        UsageError: there is no such folder, or no such file as the arguments name.
    """

    name: str
    args: tuple[str, ...]
    rootdir: Path
    runs: int = 3
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
        """Run the tests on the original in throw-away children, unless that was done, and
        import here what they import from libraries. Seed and `quick` are the tests' own affair.

        Raises:
            UsageError: the arguments are wrong, or select no test.
            EnvironmentFailure: pytest is missing, or the tests do not pass on the original.
            NothingScored: no test runs.
        """
        check_pytest(self.name)
        # Once here, not in every child.
        from gatecert.gates.suite.baseline import Suite, measure_baseline, warm_up_for

        if self.known is not None:
            warm_up_for(self.known)
        suite = Suite(self.name, self.args, self.rootdir)
        baseline = self.known or measure_baseline(suite, subject, self.runs)
        baseline = under_known_names(baseline, self.modules)
        return PreparedPytest(suite, subject, baseline, self.kernels)


@dataclass(frozen=True, slots=True)
class PreparedPytest:
    """The tests, with their libraries in memory, and what they do on the original."""

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

        wanted = chosen_for(candidate, self.baseline)
        session = run_session(
            self.suite.args,
            self.suite.rootdir,
            stop_at_first=stop_at_first,
            choice=self._settled.get(wanted.key, wanted),
            watched=candidate.kind in _WATCHED,
            entry=self.subject.entry,
            tests=owned_tests(self.kernels, self.baseline),
            # An adversary may look for what was freed.
            repeatable=candidate.kind is not CandidateKind.ADVERSARY,
        )
        return verdict_of(session, candidate.id, self.suite.gate)

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
