"""Hunt a witness for survivors of a gate over the built-in corpus.

Takes a certificate of the corpus (a file, or a folder of results) and looks outside the gate's own
cases for one that tells each survivor from its original. Rows go to --output as they come,
and the same command goes on where it stopped.

    python benchmarks/hunts.py CERTIFICATE [--seconds 300] [--cases 400] [--jobs 2]
    python benchmarks/hunts.py CERTIFICATE --gate kernelbench --sample 100 --seconds 60

Of another gate than the oracle those survivors are hunted that the oracle kills, so that there is
something to find; --sample draws some of them. Prints what share has a witness, and how long that
took.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from gatecert.campaign.hunting import run_hunts, survivors_of
from gatecert.campaign.records import Status
from gatecert.certificate.records import Certificate
from gatecert.cli.certificates import read_certificate
from gatecert.cli.progress import shown_progress
from gatecert.cli.setup import make_plan
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.errors import GatecertError
from gatecert.gates.records import ORACLE
from gatecert.mutants.records import Mutant
from gatecert.reports.hunts import hunt_lines
from gatecert.store.keys import fingerprint
from gatecert.witness.records import Hunt, HuntBudget, Witness

OUTPUT = Path(__file__).parent / "data" / "hunts.json"


class Row(msgspec.Struct, frozen=True):
    """One survivor: what is planted, its diff's changed lines, and the hunt."""

    mutant: str
    operator: str
    detail: str
    changed: tuple[str, ...]
    hunt: Hunt


class Report(msgspec.Struct, frozen=True):
    """All rows so far; `fingerprint` is of the code that made them, `certificate` the hash of the
    one that names the survivors. Of the `hunted`, `found` have a witness; seconds are those of
    all hunts."""

    fingerprint: str
    certificate: str
    budget: HuntBudget
    gate: str = ORACLE
    jobs: int = 1
    survivors: int = 0
    """Those that the sample was drawn from."""
    hunted: int = 0
    found: int = 0
    median_s: float = 0.0
    p95_s: float = 0.0
    rows: tuple[Row, ...] = ()


def main() -> None:
    """Hunt what is not in --output yet, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--gate", default=ORACLE)
    parser.add_argument("--sample", type=int, default=0, help="0: all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args()
    budget = HuntBudget(options.seconds, options.cases)
    try:
        certificate, _, sha256 = read_certificate(options.certificate)
        every = survivors_of(certificate, options.gate)
        if options.gate != ORACLE:
            every = tuple(one for one in every if _killed_by_oracle(certificate, one))
        survivors = sampled(every, options.sample, options.seed)
        mark = fingerprint([CORPUS_CONFIG.parent])
        report = Report(mark, sha256, budget, options.gate, options.jobs, len(every))
        rows = {row.mutant: row for row in _known(options.output, report)}
        missing = [mutant for mutant in survivors if mutant not in rows]
        for row in hunted(missing, budget, options.jobs, options.gate):
            rows[row.mutant] = row
            ordered = tuple(rows[mutant] for mutant in survivors if mutant in rows)
            _write(options.output, summed_up(report, ordered))
            print("\n".join(hunt_lines(row.hunt)), flush=True)
        print(said_of(summed_up(report, [rows[mutant] for mutant in survivors])))
    except GatecertError as error:
        print(error, file=sys.stderr)
        sys.exit(int(error.exit_code))


def sampled(mutants: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """So many of them, in their own order; all where there are no more."""
    if not count or count >= len(mutants):
        return tuple(mutants)
    chosen = set(random.Random(seed).sample(list(mutants), count))
    return tuple(mutant for mutant in mutants if mutant in chosen)


def summed_up(report: Report, rows: Sequence[Row]) -> Report:
    """The report with these rows and what they come to."""
    seconds = [row.hunt.seconds for row in rows]
    return msgspec.structs.replace(
        report,
        hunted=len(rows),
        found=sum(isinstance(row.hunt.found, Witness) for row in rows),
        median_s=statistics.median(seconds) if seconds else 0.0,
        p95_s=sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1] if seconds else 0.0,
        rows=tuple(rows),
    )


def said_of(report: Report) -> str:
    """One line on all hunts."""
    share = report.found / report.hunted if report.hunted else 0.0
    return (
        f"{report.gate}: {report.found} of {report.hunted} ({share:.1%}) have a witness, drawn "
        f"from {report.survivors}; median {report.median_s:.1f} s, p95 {report.p95_s:.1f} s"
    )


def hunted(
    mutants: Iterable[str], budget: HuntBudget, jobs: int, gate: str = ORACLE
) -> Iterable[Row]:
    """A row for each of the mutants, as they come."""
    only = tuple(mutants)
    if not only:
        return
    plan = make_plan(
        load_config(CORPUS_CONFIG),
        gate_names=(gate,),
        only=only,
        jobs=jobs,
        with_oracle=gate == ORACLE,
    )
    with shown_progress() as progress:
        for mutant, hunt in run_hunts(plan, budget, progress):
            yield Row(mutant.id, mutant.operator, mutant.detail, changed_lines(mutant), hunt)


def _killed_by_oracle(certificate: Certificate, mutant: str) -> bool:
    said = certificate.results[mutant].get(ORACLE)
    return said is not None and said.status is Status.KILLED


def changed_lines(mutant: Mutant) -> tuple[str, ...]:
    """The lines of its diff that were taken out and put in."""
    lines = mutant.diff.splitlines()
    return tuple(
        f"{line[0]} {line[1:].strip()}"
        for line in lines
        if line[:1] in ("-", "+") and not line.startswith(("---", "+++"))
    )


def _known(output: Path, report: Report) -> tuple[Row, ...]:
    """Rows that the same code made with the same budget."""
    with contextlib.suppress(FileNotFoundError):
        found = msgspec.json.decode(output.read_bytes(), type=Report)
        same = (found.fingerprint, found.budget, found.gate)
        if same == (report.fingerprint, report.budget, report.gate):
            return found.rows
    return ()


def _write(output: Path, report: Report) -> None:
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    partial = output.with_suffix(".partial")
    partial.write_bytes(text + b"\n")
    partial.replace(output)


if __name__ == "__main__":
    main()
