"""What processes that a gate starts say of themselves, and what all of them together show.

A gate that runs in processes of its own cannot be watched from the sandbox: each of its Python
processes writes a report instead (`command_site`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from gatecert.encoding import decode
from gatecert.gates.evidence import Evidence
from gatecert.gates.reads import GateReads, unhashed
from gatecert.gates.records import Verdict
from gatecert.lanes.records import Finding, Launch
from gatecert.mutants.records import Candidate


class ProcessReport(msgspec.Struct, frozen=True):
    """One Python process that a gate started.

    `blind` says why the overlay is not in it. `proven` are the overlaid files that it imported
    with their new text, `stale` those that it imported otherwise. `launches` are distinct, with
    how often each was made, and `modules` the files of their kernels' modules. The entry was
    called `entry_calls` times, and launched kernels from launchers (`by_entry`). `files` were
    imported or opened and are no library's; the user's code asked for `variables`, read the names
    in `folders`, and looked for the paths `sought`.
    `uncaught` is the exception that ended it; `no_verdict` says that this is no opinion on the
    candidate but a failure to run at all, and `faulted` that it tells of a kernel's fault on a GPU.
    """

    pid: int
    python: str
    blind: str = ""
    proven: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    launches: tuple[tuple[Launch, int], ...] = ()
    modules: dict[str, str] = {}
    entry_calls: int = 0
    by_entry: tuple[tuple[str, tuple[str, int]], ...] = ()
    findings: tuple[Finding, ...] = ()
    failures: tuple[str, ...] = ()
    adversary_calls: int = 0
    kernels_s: float = 0.0
    uncaught: str = ""
    no_verdict: bool = False
    faulted: bool = False
    evidence: Evidence | None = None
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    sought: tuple[str, ...] = ()


class Elsewhere(msgspec.Struct, frozen=True):
    """All reports of one run. `missed` are overlaid files without proof."""

    reports: tuple[ProcessReport, ...] = ()
    missed: tuple[str, ...] = ()

    @property
    def modules(self) -> dict[str, str]:
        """The files of the modules of launched kernels, in the first process that knows them."""
        return {name: path for one in reversed(self.reports) for name, path in one.modules.items()}

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The distinct launches."""
        return tuple(dict.fromkeys(launch for one in self.reports for launch, _ in one.launches))

    @property
    def entry_calls(self) -> int:
        """How often the entry was called, as far as it was seen."""
        return sum(one.entry_calls for one in self.reports)

    @property
    def by_entry(self) -> frozenset[tuple[str, tuple[str, int]]]:
        """Kernels that the entry launched, each with the launcher that did."""
        return frozenset(made for one in self.reports for made in one.by_entry)

    @property
    def launch_count(self) -> int:
        """How many launches there were, repeats included."""
        return sum(times for one in self.reports for _, times in one.launches)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What guards saw, one per kind, kernel and argument."""
        merged: dict[tuple[str, str, str], Finding] = {}
        for finding in (finding for one in self.reports for finding in one.findings):
            place = (finding.kind.value, finding.kernel, finding.argument)
            earlier = merged.get(place)
            if earlier is not None:
                lanes = earlier.lanes + finding.lanes
                finding = msgspec.structs.replace(earlier, lanes=lanes)
            merged[place] = finding
        return tuple(merged.values())

    @property
    def failures(self) -> tuple[str, ...]:
        """Launches that failed inside the lane."""
        return tuple(failure for one in self.reports for failure in one.failures)

    @property
    def adversary_calls(self) -> int:
        """How often an adversary was called."""
        return sum(one.adversary_calls for one in self.reports)

    @property
    def kernels_s(self) -> float:
        """Seconds inside kernels."""
        return sum(one.kernels_s for one in self.reports)

    @property
    def reads(self) -> GateReads:
        """What all processes read, the names alone."""
        return unhashed(
            {file for one in self.reports for file in one.files},
            {name for one in self.reports for name in one.variables},
            {folder for one in self.reports for folder in one.folders},
            {path for one in self.reports for path in one.sought},
        )

    @property
    def blind(self) -> str:
        """Why some process does not have the overlay; empty where all have it."""
        return next((f"{one.python}: {one.blind}" for one in self.reports if one.blind), "")

    @property
    def evidence(self) -> Evidence | None:
        """What was seen of comparisons and calls, over all processes."""
        seen = [one.evidence for one in self.reports if one.evidence is not None]
        return _together(seen) if seen else None


@runtime_checkable
class GateElsewhere(Protocol):
    """A prepared gate whose candidates run in processes of its own; inherit it for `judge`."""

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """As `run_elsewhere`, without what its processes saw."""
        return self.run_elsewhere(candidate, candidate.files, stop_at_first=stop_at_first)[0]

    def run_elsewhere(
        self, candidate: Candidate, files: Mapping[str, str], *, stop_at_first: bool
    ) -> tuple[Verdict, Elsewhere]:
        """Judge the candidate, whose overlay is `files`; called in a child, as `judge` is."""
        ...


def read_reports(folder: Path, files: Iterable[str]) -> Elsewhere:
    """The reports in a folder, in the order in which their processes began.

    A file counts as imported if one process proves it and none imported anything else.
    """
    reports = []
    for path in sorted(folder.glob("*.json")):
        try:
            reports.append(decode(path.read_bytes(), ProcessReport))
        except (OSError, msgspec.DecodeError):
            continue  # it was killed while it wrote
    proven = {path for one in reports for path in one.proven}
    stale = {path for one in reports for path in one.stale}
    missed = tuple(path for path in files if path not in proven or path in stale)
    return Elsewhere(tuple(reports), missed)


def _together(seen: Sequence[Evidence]) -> Evidence:
    """Counts added, lists one after the other; of the rest the first that is known."""
    total = seen[0]
    for other in seen[1:]:
        for name in Evidence.__struct_fields__:
            mine, theirs = getattr(total, name), getattr(other, name)
            adds = isinstance(mine, int | tuple) and theirs is not None
            both = mine + theirs if adds else theirs if mine is None else mine
            total = msgspec.structs.replace(total, **{name: both})
    return total
