"""What judging and comparing cost, in a line each."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from gatecert.campaign.records import PROCESSES
from gatecert.gates.records import Verdict
from gatecert.mutants.records import CodeComparison
from gatecert.wording import count


class Spending:
    """Adds up where the time of judged candidates went. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._candidates = 0
        self._kernels_s = self._starting_s = self._rest_s = 0.0

    def add(self, verdict: Verdict) -> None:
        """A verdict that was just given, not one that was remembered."""
        with self._lock:
            self._candidates += 1
            self._kernels_s += verdict.spent.kernels_s
            self._starting_s += max(0.0, verdict.duration_s - verdict.spent.gate_s)
            self._rest_s += verdict.spent.gate_s - verdict.spent.kernels_s

    def line(self, wall_s: float) -> str:
        """`judged 2,660 candidates, 6.2 a second; of their time 71% went into ...`."""
        total_s = self._kernels_s + self._starting_s + self._rest_s
        if not self._candidates or not total_s or not wall_s:
            return "judged nothing that was not known"
        shares = ", ".join(
            f"{seconds / total_s:.0%} {what}"
            for what, seconds in (
                ("in the interpreter", self._kernels_s),
                ("starting processes", self._starting_s),
                ("importing, copying and comparing", self._rest_s),
            )
        )
        each = self._candidates / wall_s
        return f"judged {self._candidates:,} candidates, {each:.1f} a second: {shares}"

    @property
    def candidates(self) -> int:
        """How many were judged."""
        return self._candidates

    @property
    def seconds(self) -> dict[str, float]:
        """Process seconds by what they went into."""
        return {
            PROCESSES + "kernels": round(self._kernels_s, 3),
            PROCESSES + "starting": round(self._starting_s, 3),
            PROCESSES + "the rest": round(self._rest_s, 3),
        }


def waiting_line(
    gate: str, originals: Mapping[str, Verdict], tasks: Collection[str], jobs: int
) -> str:
    """`gate 'gpu': 61 candidates in fresh processes, 4 minutes at most with 2 jobs`, by what its
    `originals` took; `tasks` has the subject of each candidate. "" where that is not known."""
    took_s = sum(originals[subject].duration_s for subject in tasks if subject in originals)
    if not took_s:
        return ""
    minutes = count(math.ceil(took_s / jobs / 60.0), "minute")
    return (
        f"gate {gate!r}: {count(len(tasks), 'candidate')} in fresh processes, {minutes} at most "
        f"with {count(jobs, 'job')}"
    )


def comparing_line(comparisons: Iterable[CodeComparison]) -> str:
    """`compared 2,901 mutants: median 48 ms, p90 71 ms per mutant and signature on a core`."""
    fresh = [said for said in comparisons if said.signatures_compiled and said.cpu_s]
    if not fresh:
        return "compared nothing that was not known"
    if len(fresh) == 1:
        each = 1e3 * fresh[0].cpu_s / fresh[0].signatures_compiled
        return f"compared the code of 1 mutant: {each:.0f} ms per signature on a core"
    each_ms = np.array([1e3 * said.cpu_s / said.signatures_compiled for said in fresh])
    median, p90 = np.percentile(each_ms, [50, 90])
    return (
        f"compared the code of {len(fresh):,} mutants: median {median:.0f} ms, "
        f"p90 {p90:.0f} ms per mutant and signature on a core"
    )
