"""What people ignore or accept, in a plan: comments of the sources, and two files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.mutants.acceptance import AcceptedEntry, accepted_mutants, idle_entries
from gatecert.mutants.suppression import (
    Comment,
    Entry,
    find_comments,
    idle_rules,
    ignored_mutants,
)
from gatecert.operators.registry import all_operators


def with_ignored(subject: PlannedSubject, entries: Sequence[Entry]) -> PlannedSubject:
    """The subject with those of its mutants marked that a comment or an entry covers.

    Raises:
        UsageError: a comment is not of the form that ignores something; says where.
    """
    comments = tuple(_comments_of([subject]))
    ignored = ignored_mutants(subject.run.mutants, subject.texts, comments, entries)
    return replace(subject, run=msgspec.structs.replace(subject.run, ignored=ignored))


def with_accepted(subject: PlannedSubject, entries: Sequence[AcceptedEntry]) -> PlannedSubject:
    """The subject with those of its mutants marked that somebody accepts as survivors."""
    accepted = accepted_mutants(subject.run.mutants, subject.texts, entries)
    return replace(subject, run=msgspec.structs.replace(subject.run, accepted=accepted))


def idle_rules_of(plan: Plan, planned: Sequence[PlannedSubject]) -> list[str]:
    """A line for each comment and entry that ignores nothing."""
    profiled = any(subject.profile.classes for subject in plan.subjects)
    failed = any(subject.run.failed for subject in planned)
    mutants = [mutant for subject in planned for mutant in subject.run.mutants]
    whole = plan.whole and not profiled and not failed
    idle = idle_entries(mutants, plan.accepted) if whole else []
    return idle + idle_rules(
        mutants,
        {path: text for subject in planned for path, text in subject.texts.items()},
        _comments_of(planned),
        plan.ignore,
        [operator.name for operator in all_operators()],
        whole=whole,
    )


def _comments_of(planned: Iterable[PlannedSubject]) -> Iterator[Comment]:
    texts = {path: text for subject in planned for path, text in subject.texts.items()}
    for path in sorted(texts):
        yield from find_comments(path, texts[path])
