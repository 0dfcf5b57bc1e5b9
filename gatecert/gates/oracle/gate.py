"""The oracle by name: a strategy, a comparator, and guards that are always on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatecert.errors import UsageError
from gatecert.gates.oracle.cases import in_turns, prepare_case, subject_cases, under_every_config
from gatecert.gates.oracle.prepared import PreparedOracle
from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for, why_no_case
from gatecert.oracle.comparators import Comparator, uses_baseline
from gatecert.oracle.metamorphic import check_reference
from gatecert.oracle.operations import Operation, get_operation, resolve_operation
from gatecert.oracle.probes import check_it_can_fail, check_operation
from gatecert.oracle.strategies import RELATIONS
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.subjects import Subject

USUAL_STRATEGY = "certify"
_DEFAULT_COMPARATOR = RoundingInterval()


@dataclass(frozen=True, slots=True)
class OracleGate:
    """The oracle under a named configuration: strategy x comparator, guards always on.

    `rows` hold comparators by operation and dtype, which go before `comparator`.
    """

    name: str = "oracle"
    strategy: str = USUAL_STRATEGY
    comparator: Comparator = _DEFAULT_COMPARATOR
    rows: Mapping[tuple[str, str], Comparator] = field(default_factory=dict)
    listed: tuple[Case, ...] = ()
    """Cases that it tries in the place of those of a strategy."""

    def applies_to(self, subject: Subject) -> str | None:
        """It needs an operation, for its schema and reference, and cases of its strategy."""
        if subject.operation is None:
            return "it has no operation, so there is no schema and no reference"
        if self.listed:
            return None if self._of(subject) else "no listed case is of its operation and dtypes"
        if self.strategy == USUAL_STRATEGY or ":" in subject.operation:
            return None
        return why_no_case(get_operation(subject.operation), self.strategy, dtypes=subject.dtypes)

    def cases(self, subject: Subject, *, seed: int, quick: bool) -> tuple[Case, ...]:
        """The cases that it tries."""
        if self.listed:
            return self._of(subject)
        operation = resolve_operation(subject.operation or "")
        strategy = self._strategy(subject, quick)
        return subject_cases(operation, subject, strategy=strategy, seed=seed)[0]

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedOracle:
        """Build every case of the strategy with its inputs and reference.

        Raises:
            UsageError: the strategy has no case for the subject.
            EnvironmentFailure: the operation is not what it declares: its reference breaks a
                relation, is not repeatable, ... (see `oracle.probes`).
        """
        assert subject.operation is not None
        operation = resolve_operation(subject.operation)
        check_declared(operation, subject, seed)
        cases = self.cases(subject, seed=seed, quick=quick)
        if not cases:
            raise UsageError(
                f"subject {subject.name!r} has no case under strategy {self.strategy!r}: "
                f"{why_no_case(operation, self.strategy, dtypes=subject.dtypes)}"
            )
        by_dtype = {
            dtype: self.rows.get((operation.name, dtype), self.comparator)
            for dtype in subject.dtypes
        }
        prepared = [
            prepare_case(operation, case, subject, baseline=uses_baseline(by_dtype[case.dtype]))
            for case in cases
        ]
        if self.comparator == _DEFAULT_COMPARATOR and not self.rows and not self.listed:
            # Another comparator is its owner's, who may want to know what a wide one misses.
            check_it_can_fail(
                operation,
                [(one.case, one.inputs, one.expected) for one in prepared],
                [self.comparator] * len(prepared),
            )
        return PreparedOracle(
            gate=self.name,
            subject=subject,
            operation=operation,
            comparator=self.comparator,
            by_dtype=by_dtype,
            cases=tuple(
                under_every_config(prepared, subject.configs)
                if subject.profile.every_config
                else in_turns(prepared, subject.configs)
            ),
        )

    def _of(self, subject: Subject) -> tuple[Case, ...]:
        """The listed cases that are of this subject."""
        name = (subject.operation or "").rpartition(":")[2]
        return tuple(c for c in self.listed if c.operation == name and c.dtype in subject.dtypes)

    def _strategy(self, subject: Subject, quick: bool) -> str:
        """Its own where it has a special one, else what the command and the profile say."""
        if self.strategy != USUAL_STRATEGY:
            return self.strategy
        return "quick" if quick else subject.profile.strategy or self.strategy


def check_declared(operation: Operation, subject: Subject, seed: int) -> None:
    """Hold the reference to what is declared of it, in the two cases that show most.

    Raises:
        EnvironmentFailure: it is not so.
    """
    dtypes, blocks = subject.dtypes[:1], subject.blocks
    cases = cases_for(operation, dtypes=dtypes, blocks=blocks, strategy=RELATIONS, seed=seed)
    for case in cases[:2]:
        check_operation(operation, case)
        check_reference(operation, case)
