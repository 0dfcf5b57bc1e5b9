"""Hunt a witness for every survivor of the oracle over the built-in corpus.

Takes a certificate of the corpus (a file, or a folder of results) and looks outside the oracle's
cases for one that tells each survivor from its original. Rows go to --output as they come,
and the same command goes on where it stopped.

    python benchmarks/hunts.py CERTIFICATE [--seconds 300] [--cases 400] [--jobs 2]
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gatecert.campaign.hunting import run_hunts, survivors_of
from gatecert.cli.certificates import read_certificate
from gatecert.cli.progress import shown_progress
from gatecert.cli.setup import make_plan
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.errors import GatecertError
from gatecert.gates.records import ORACLE
from gatecert.mutants.records import Mutant
from gatecert.reports.hunts import hunt_lines
from gatecert.store.keys import fingerprint
from gatecert.witness.records import Hunt, HuntBudget

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
    one that names the survivors."""

    fingerprint: str
    certificate: str
    budget: HuntBudget
    rows: tuple[Row, ...] = ()


def main() -> None:
    """Hunt what is not in --output yet, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    budget = HuntBudget(options.seconds, options.cases)
    try:
        certificate, _, sha256 = read_certificate(options.certificate)
        survivors = survivors_of(certificate, ORACLE)
        report = Report(fingerprint([CORPUS_CONFIG.parent]), sha256, budget)
        rows = {row.mutant: row for row in _known(options.output, report)}
        missing = [mutant for mutant in survivors if mutant not in rows]
        for row in hunted(missing, budget, options.jobs):
            rows[row.mutant] = row
            ordered = tuple(rows[mutant] for mutant in survivors if mutant in rows)
            _write(options.output, msgspec.structs.replace(report, rows=ordered))
            print("\n".join(hunt_lines(row.hunt)), flush=True)
    except GatecertError as error:
        print(error, file=sys.stderr)
        sys.exit(int(error.exit_code))


def hunted(mutants: Iterable[str], budget: HuntBudget, jobs: int) -> Iterable[Row]:
    """A row for each of the mutants, as they come."""
    only = tuple(mutants)
    if not only:
        return
    plan = make_plan(load_config(CORPUS_CONFIG), gate_names=(ORACLE,), only=only, jobs=jobs)
    with shown_progress() as progress:
        for mutant, hunt in run_hunts(plan, budget, progress):
            yield Row(mutant.id, mutant.operator, mutant.detail, changed_lines(mutant), hunt)


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
        if (found.fingerprint, found.budget) == (report.fingerprint, report.budget):
            return found.rows
    return ()


def _write(output: Path, report: Report) -> None:
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    partial = output.with_suffix(".partial")
    partial.write_bytes(text + b"\n")
    partial.replace(output)


if __name__ == "__main__":
    main()
