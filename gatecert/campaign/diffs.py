"""Diffs as `git apply` takes them: headed by the file's path from the project's folder."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.provenance import Places
from gatecert.config import CORPUS_CONFIG
from gatecert.mutants.plant import headed
from gatecert.mutants.records import Candidate, Mutant


def with_paths(subject: PlannedSubject, places: Places) -> PlannedSubject:
    """The subject with every diff headed so. Files outside of the project, and those of the
    built-in corpus, keep their modules' names."""
    if places.root.resolve() == CORPUS_CONFIG.parent.resolve():
        return subject

    def shown(diff: str, path: str) -> str:
        name = places.name_of(path)
        return diff if name.startswith(("module:", "../")) else headed(diff, name)

    def of_mutant(one: Mutant) -> Mutant:
        return msgspec.structs.replace(one, diff=shown(one.diff, one.path))

    def of_candidate(one: Candidate) -> Candidate:
        return msgspec.structs.replace(one, diff=shown(one.diff, *one.files))

    run = msgspec.structs.replace(
        subject.run,
        mutants=tuple(map(of_mutant, subject.run.mutants)),
        controls=tuple(map(of_candidate, subject.run.controls)),
        adversaries=tuple(map(of_candidate, subject.run.adversaries)),
    )
    return replace(subject, run=run)
