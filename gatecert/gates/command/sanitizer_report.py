"""Read what Compute Sanitizer printed.

Its lines begin with nine equals signs; the rest of the output is the program's own. Only a
record of the kind that the tool is there for is a finding: not an error of a CUDA call, not a
warning, not a complaint of the tool about the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_OURS = re.compile(r"^={9}(?: (?P<body>.*))?$")
_RECORDS = {
    "memcheck": re.compile(r"Invalid __\w+__ (?:read|write|atomic)\b|Misaligned\b"),
    "racecheck": re.compile(
        r"Error: (?:Race reported between|Potential (?:RAW|WAR|WAW) hazard detected)"
    ),
    "initcheck": re.compile(r"(?:Error: )?Uninitialized __\w+__ memory read\b"),
}
_SUMMARY = {
    "memcheck": re.compile(r"ERROR SUMMARY: (\d+) error"),
    "racecheck": re.compile(r"RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) error"),
    "initcheck": re.compile(r"ERROR SUMMARY: (\d+) error"),
}
_REFUSALS = re.compile(
    r"not supported|unable to|could not|cannot|failed to|internal (?:sanitizer )?error|"
    r"terminated before first instrumented|permission|no (?:cuda )?devices?\b",
    re.IGNORECASE,
)
_COMPLAINT = re.compile(
    r"(?:Error|Warning|Fatal|Internal|Unable|Failed|Cannot|No )\b", re.IGNORECASE
)
_PLACE = re.compile(r"(?:at|and) ")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_HAZARDS = re.compile(r" \[\d+ hazards?\]")


@dataclass(frozen=True, slots=True)
class SanitizerReport:
    """Findings in words, each once; whether the tool came to its end, with how many errors of
    any sort; and its refusal to work here, if it printed one."""

    records: tuple[str, ...]
    finished: bool
    errors: int
    refusal: str


def read_report(output: str, tool: str) -> SanitizerReport:
    """What the tool of that name printed among the program's own output."""
    lines = list(_lines(output))
    counts = [int(found[1]) for line in lines if (found := _SUMMARY[tool].match(line))]
    records = dict.fromkeys(_records(lines, tool))
    refusals = (
        line
        for line in lines
        if _COMPLAINT.match(line) and _REFUSALS.search(line) and not _RECORDS[tool].match(line)
    )
    return SanitizerReport(tuple(records), bool(counts), sum(counts), next(refusals, ""))


def _lines(output: str) -> Iterator[str]:
    for line in output.splitlines():
        found = _OURS.match(line.rstrip())
        if found is not None and found["body"]:
            yield found["body"].strip()


def _records(lines: Sequence[str], tool: str) -> Iterator[str]:
    """The first line of every record with the place that the next one names. What differs from
    run to run, addresses and counts, is left out."""
    for number, line in enumerate(lines):
        if _RECORDS[tool].match(line):
            place = lines[number + 1] if number + 1 < len(lines) else ""
            whole = f"{line} {place}" if _PLACE.match(place) else line
            whole = whole.removeprefix("Error: ")
            yield _HAZARDS.sub("", _ADDRESS.sub("0x...", whole))
