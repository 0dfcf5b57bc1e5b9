"""Code comparisons with a memory: a subject whose mutants were compared before is not again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gatecert.campaign.code import Comparisons, compare_all, compare_survivors
from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.gates.records import Verdict
from gatecert.mutants.records import CodeComparison, CodeDepth
from gatecert.store import RunRecord
from gatecert.store.keys import content_key
from gatecert.store.records import PlannedPart


@dataclass(frozen=True, slots=True)
class Comparer:
    """Compares code and keeps the answers in the run's record. What is said of a mutant depends
    on its siblings too, so a subject's answers stand and fall together."""

    record: RunRecord
    fingerprint: str
    jobs: int
    progress: Progress

    def compare(self, planned: Iterable[PlannedSubject]) -> dict[str, dict[str, CodeComparison]]:
        """Optimised IR of every mutant, by subject and mutant."""
        planned = tuple(planned)
        keys = {
            subject.run.subject.name: self._key(subject, CodeDepth.OPTIMISED_IR)
            for subject in planned
        }
        found = self._known(keys)
        missing = [subject for subject in planned if subject.run.subject.name not in found]
        if missing:
            said = compare_all(
                missing, jobs=self.jobs, codes=self.record.codes, progress=self.progress
            )
            found.update({name: dict(by_mutant) for name, by_mutant in said.items()})
        self._keep(keys, found)
        return found

    def compare_survivors(
        self,
        planned: Sequence[PlannedSubject],
        comparisons: Comparisons,
        verdicts: Mapping[str, Iterable[Verdict]],
    ) -> None:
        """Machine code of those that a gate's verdict leaves in doubt."""
        keys = {
            subject.run.subject.name: self._key(
                subject,
                CodeDepth.MACHINE_CODE,
                [
                    (one.mutant, one.verdict, one.duplicate_of)
                    for one in comparisons[subject.run.subject.name].values()
                ],
                sorted(
                    (said.candidate, said.gate, said.outcome, said.loaded)
                    for said in verdicts[subject.run.subject.name]
                ),
            )
            for subject in planned
        }
        found = self._known(keys)
        missing = [subject for subject in planned if subject.run.subject.name not in found]
        if missing:
            said = compare_survivors(
                missing,
                comparisons,
                verdicts,
                jobs=self.jobs,
                codes=self.record.codes,
                progress=self.progress,
            )
            names = {subject.run.subject.name for subject in missing}
            found.update({name: dict(said[name]) for name in names})
        self._keep(keys, found)

    def adopt(self, planned: Iterable[PlannedSubject], comparisons: Comparisons) -> None:
        """Take over answers that another store's run has."""
        keys = {
            subject.run.subject.name: self._key(subject, CodeDepth.OPTIMISED_IR)
            for subject in planned
        }
        self._keep(keys, comparisons)

    def _key(self, subject: PlannedSubject, depth: CodeDepth, *more: object) -> str:
        return content_key(
            self.fingerprint,
            subject.sources_sha256,
            subject.run.subject.import_paths,
            subject.run.kernels,
            subject.run.mutants,
            subject.texts,
            subject.signatures,
            depth,
            *more,
        )

    def _known(self, keys: Mapping[str, str]) -> dict[str, dict[str, CodeComparison]]:
        return {
            name: {one.mutant: one for one in known}
            for name, key in keys.items()
            if (known := self.record.known_comparisons(key)) is not None
        }

    def _keep(
        self, keys: Mapping[str, str], found: Mapping[str, Mapping[str, CodeComparison]]
    ) -> None:
        for name, key in keys.items():
            self.record.keep_comparisons(name, key, tuple(found[name].values()))


def part_of(subject: PlannedSubject) -> PlannedPart:
    """What a later comparison of the subject's code needs."""
    return PlannedPart(
        subject=subject.run.subject.name,
        texts=subject.texts,
        signatures=subject.signatures,
        probe_s=subject.probe_s,
        sources_sha256=subject.sources_sha256,
        preload=subject.preload,
    )
