"""Compare the code of planted mutants: their IR for all, machine code for who is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.compile import compare_code
from gatecert.mutants.compile_pool import CompilePool, compile_pool
from gatecert.mutants.records import CodeComparison, CodeDepth, CodeVerdict, Mutant

Comparisons = Mapping[str, Mapping[str, CodeComparison]]
"""By subject and mutant."""


def compare_all(
    planned: Sequence[PlannedSubject], *, jobs: int, codes: Path, progress: Progress
) -> dict[str, dict[str, CodeComparison]]:
    """Every mutant's optimised IR held against the original's; hashes are kept in `codes`."""
    work = {subject.run.subject.name: subject.run.mutants for subject in planned}
    progress.stage("compile and compare code", sum(map(len, work.values())))
    with compile_pool(jobs, codes) as pool:
        return compare_at_depth(planned, work, pool, CodeDepth.OPTIMISED_IR, progress)


def compare_survivors(
    planned: Sequence[PlannedSubject],
    comparisons: Comparisons,
    verdicts: Mapping[str, Iterable[Verdict]],
    *,
    jobs: int,
    codes: Path,
    progress: Progress,
) -> dict[str, dict[str, CodeComparison]]:
    """Machine code of the mutants that no gate rejected and some gate accepted.

    A rejected mutant has shown that it is none of the equivalents, which saves nine tenths of
    the price. What the deeper comparison cannot say leaves the first one's answer.
    """
    work = {
        subject.run.subject.name: tuple(
            _survivors(
                subject.run.mutants,
                comparisons[subject.run.subject.name],
                verdicts[subject.run.subject.name],
            )
        )
        for subject in planned
    }
    merged = {name: dict(known) for name, known in comparisons.items()}
    total = sum(map(len, work.values()))
    if not total:
        return merged
    progress.stage("compare survivors' machine code", total)
    with compile_pool(min(jobs, total), codes) as pool:
        deeper = compare_at_depth(planned, work, pool, CodeDepth.MACHINE_CODE, progress)
    for name, said in deeper.items():
        merged[name].update(
            (mutant, one) for mutant, one in said.items() if one.verdict is not CodeVerdict.UNKNOWN
        )
    return merged


def _survivors(
    mutants: Iterable[Mutant], comparisons: Mapping[str, CodeComparison], said: Iterable[Verdict]
) -> Iterable[Mutant]:
    outcomes: dict[str, set[GateOutcome]] = {}
    for verdict in said:
        if verdict.loaded:
            outcomes.setdefault(verdict.candidate, set()).add(verdict.outcome)
    for mutant in mutants:
        seen = outcomes.get(mutant.id, set())
        viable = comparisons[mutant.id].verdict is CodeVerdict.VIABLE
        if viable and GateOutcome.ACCEPTED in seen and GateOutcome.REJECTED not in seen:
            yield mutant


def compare_at_depth(
    planned: Iterable[PlannedSubject],
    work: Mapping[str, Sequence[Mutant]],
    pool: CompilePool,
    depth: CodeDepth,
    progress: Progress,
) -> dict[str, dict[str, CodeComparison]]:
    """The mutants of `work`, by subject, compared at one depth; by subject and mutant."""
    found = {}
    for subject in planned:
        said = compare_code(
            work[subject.run.subject.name],
            pool,
            kernels=subject.run.kernels,
            texts=subject.texts,
            signatures=subject.signatures,
            import_paths=subject.run.subject.import_paths,
            preload=subject.preload,
            depth=depth,
            on_result=lambda _: progress.step(),
        )
        if subject.run.subject.operation is None:
            said = [_without_domain(one) for one in said]
        found[subject.run.subject.name] = {one.mutant: one for one in said}
    return found


def _without_domain(said: CodeComparison) -> CodeComparison:
    """What is left of a comparison where only a gate's own launches were compared."""
    weaker = {
        CodeVerdict.EQUIVALENT: CodeVerdict.SAME_ON_LAUNCHES,
        CodeVerdict.DUPLICATE: CodeVerdict.VIABLE,
    }
    if said.verdict not in weaker:
        return said
    return msgspec.structs.replace(said, verdict=weaker[said.verdict], duplicate_of="")
