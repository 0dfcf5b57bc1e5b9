"""What a run was about and what it left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath

import msgspec

from gatecert.campaign.records import Run
from gatecert.certificate.records import SelectionSummary
from gatecert.mutants.records import Ignored, Skip


def selection_of(run: Run) -> SelectionSummary:
    """What part of the mutants was asked for and run."""
    chosen = run.selection
    return SelectionSummary(
        since=chosen.since,
        note=chosen.note,
        sample=chosen.sample,
        sample_of=chosen.sample_of,
        time_budget_s=chosen.time_budget_s,
        not_reached=len({mutant for mutant, _ in chosen.not_reached}),
        only=chosen.only,
        tests_changed=chosen.tests_changed,
    )


def ignored(run: Run) -> Iterator[Ignored]:
    """Mutants that a person ignores, of those that the run is about."""
    for part in run.subjects:
        ids = {mutant.id for mutant in part.mutants}
        for one in part.ignored:
            if one.mutant in ids:
                yield msgspec.structs.replace(one, path=relative(one.path, run))


def skipped(run: Run) -> Iterator[Skip]:
    """What no subject mutates: a kernel that another subject launches is no omission."""
    mutated = {kernel.name for part in run.subjects for kernel in part.kernels}
    skips = (skip for part in run.subjects for skip in part.skipped)
    for skip in {(s.name, s.line): s for s in skips}.values():
        if skip.name not in mutated:
            yield skip


def not_tested(run: Run) -> Iterator[str]:
    """What the run says nothing about, a line each."""
    yield from run.not_tested
    yield from (f"{gate}, left out: {why}" for gate, why in run.left_out.items())
    chosen = run.selection
    if chosen.only:
        yield "benign rewrites, adversaries and all mutants but those named (--only)"
    if chosen.since:
        yield f"mutants on lines that are as they were at {chosen.since} (--in-diff)"
    if chosen.tests_changed:
        yield f"what the changes to {', '.join(chosen.tests_changed)} let through (--in-diff)"
    if chosen.sample < chosen.sample_of:
        left = chosen.sample_of - chosen.sample
        yield f"{left} of {chosen.sample_of} mutants, which are not in the sample (--sample)"
    if chosen.sample:
        yield "the detection ladder, which is in no sample (--sample)"
    for mutant, gate in chosen.not_reached:
        yield f"{mutant} under {gate}: not reached in {chosen.time_budget_s:g} s (--time-budget)"
    for part in run.subjects:
        if part.failed:
            yield f"{part.subject.name}: all of it: {part.failed}"
        yield from (f"{part.subject.name}: {line}" for line in part.not_tested)
    yield from dict.fromkeys(
        f"{verdict.gate}: {note}"
        for part in run.subjects
        for verdict in part.verdicts
        if verdict.baseline is not None
        for note in verdict.baseline.notes()
    )


def relative(path: str, run: Run, module: str = "") -> str:
    """The path from the configuration's folder, of a file below it or below a folder that
    subjects are imported from; of one elsewhere `module:` and its module, or its bare name."""
    place = PurePath(path)
    imported = (folder for part in run.subjects for folder in part.subject.import_paths)
    if run.root and any(place.is_relative_to(folder) for folder in (run.root, *imported)):
        return PurePath(os.path.relpath(place, run.root)).as_posix()
    if not place.is_absolute():
        return path
    return f"module:{module}" if module else place.name
