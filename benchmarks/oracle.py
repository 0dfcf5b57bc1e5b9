"""What a case of the oracle costs, against one bare run and one reference, on the interpreter.

    python benchmarks/oracle.py OUTPUT.json [--subject NAME ...] [--cases 12] [--repeats 7]
        [--jobs 1] [--machine WORDS]

For each built-in subject two processes take turns on the same cases, in one order and the other:

- bare: the original under Triton's own interpreter, as a test would run it, and the reference;
- the oracle: a copy of the inputs, the run under all guards, the comparison of inputs and outputs;
  and, apart, the observation that a matrix run keeps of it.

A ratio is (oracle + observation) / (bare + reference), of medians over the repeats; a subject's is
the median over its cases. Rows are written as they come, and the same command
goes on where it stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from gatecert.campaign.environment import describe_environment
from gatecert.campaign.records import Environment
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.gates.cells import sight_of
from gatecert.gates.execution import execute
from gatecert.gates.oracle import OracleGate
from gatecert.gates.records import GateOutcome
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from gatecert.mutants.records import original
from gatecert.oracle.case import Case
from gatecert.oracle.expectation import reference_results
from gatecert.oracle.inputs import fresh_copy, make_inputs
from gatecert.oracle.operations import resolve_operation
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.store.keys import fingerprint
from gatecert.subjects import Subject, load_entry

BARE, REFERENCE, GUARDED, OBSERVATION = PARTS = ("bare", "reference", "oracle", "observation")
ALL_CASES = "all cases"
LIMIT = 1.5
_RESAMPLES = 2_000


class Turn(msgspec.Struct, frozen=True):
    """One repeat of one case in one process: seconds by part, or why it `failed`."""

    case: str
    seconds: dict[str, float] = {}
    failed: str = ""


class Row(msgspec.Struct, frozen=True):
    """A subject: medians over cases of their medians over `repeats`.

    `seconds` are those of a case by part. `judged` is the ratio without the observation, `ratio`
    with it, `largest` the largest of a case; `further` that of all cases of the strategy with their
    further runs, without observation. Cases that Triton's own interpreter cannot run are told.
    """

    subject: str
    cases: int
    repeats: int
    ratio: float = 0.0
    judged: float = 0.0
    largest: float = 0.0
    further: float = 0.0
    seconds: dict[str, float] = {}
    failed: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """All rows so far; `fingerprint` is of the code that made them. The interval is a bootstrap of
    the median over subjects."""

    fingerprint: str
    environment: Environment
    machine: str
    limit: float = LIMIT
    subjects: int = 0
    median: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)
    largest: float = 0.0
    rows: tuple[Row, ...] = ()


def main() -> None:
    """Measure what is not in OUTPUT yet, write, print; exit 2 if a subject is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--machine", default="")
    parser.add_argument("--turns", choices=[BARE, GUARDED], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns:
        take_turns(options.subject[0], options.turns, options.cases)
        return
    names = options.subject or [one.name for one in load_config(CORPUS_CONFIG).subjects]
    mark = fingerprint([CORPUS_CONFIG.parent])
    report = Report(mark, describe_environment(""), options.machine)
    rows = {row.subject: row for row in _known(options.output, mark)}
    missing = [name for name in names if name not in rows]

    def one(name: str) -> Row:
        return measured(name, options.cases, options.repeats)

    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(one, missing):
            rows[row.subject] = row
            _write(options.output, summed_up(report, list(rows.values())))
            said = f"{row.ratio:5.2f} (largest {row.largest:.2f})" if row.cases else row.failed[0]
            print(f"{row.subject:26} {said}", flush=True)
    report = summed_up(report, [rows[name] for name in names])
    low, high = report.interval
    print(f"{report.subjects} subjects: median {report.median:.2f} [{low:.2f}, {high:.2f}]")
    print(f"largest {report.largest:.2f}, limit {LIMIT}")
    sys.exit(2 if report.largest > LIMIT else 0)


def measured(name: str, cases: int, repeats: int) -> Row:
    """Let two processes take turns on the cases of a subject."""
    with _process(name, BARE, cases) as bare, _process(name, GUARDED, cases) as guarded:
        turns: list[list[Turn]] = []
        for repeat in range(repeats + 1):
            order = (bare, guarded) if repeat % 2 else (guarded, bare)
            turns += [_asked(process) for process in order]
    # The first repeat warms caches up.
    return row_of(name, repeats, turns[2:])


def row_of(name: str, repeats: int, turns: Sequence[Sequence[Turn]]) -> Row:
    """The row of a subject whose every case was run by both processes in each repeat."""
    by_case: dict[str, dict[str, list[float]]] = {}
    failed: dict[str, str] = {}
    for turn in (turn for some in turns for turn in some):
        if turn.failed:
            failed[turn.case] = turn.failed
        for part, seconds in turn.seconds.items():
            by_case.setdefault(turn.case, {}).setdefault(part, []).append(seconds)
    medians = {
        case: {part: statistics.median(all_of) for part, all_of in parts.items()}
        for case, parts in by_case.items()
        if case not in failed
    }
    whole = medians.pop(ALL_CASES)[ALL_CASES]
    told = tuple(f"{case}: {why}" for case, why in failed.items())
    if not medians:
        return Row(name, 0, repeats, failed=told)
    base = {case: parts[BARE] + parts[REFERENCE] for case, parts in medians.items()}
    ratios = [(p[GUARDED] + p[OBSERVATION]) / base[case] for case, p in medians.items()]
    return Row(
        name,
        len(medians),
        repeats,
        ratio=statistics.median(ratios),
        judged=statistics.median(parts[GUARDED] / base[case] for case, parts in medians.items()),
        largest=max(ratios),
        further=whole / statistics.fmean(base.values()),
        seconds={
            part: statistics.median(parts[part] for parts in medians.values()) for part in PARTS
        },
        failed=told,
    )


def summed_up(report: Report, rows: Sequence[Row]) -> Report:
    """The report with these rows."""
    ratios = np.array([row.ratio for row in rows if row.cases])
    drawn = np.random.default_rng(0).choice(ratios, (_RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return msgspec.structs.replace(
        report,
        subjects=len(ratios),
        median=float(np.median(ratios)),
        interval=(float(low), float(high)),
        largest=float(ratios.max()),
        rows=tuple(rows),
    )


def take_turns(name: str, kind: str, count: int) -> None:
    """The process: a repeat of all cases for each line that it is sent."""
    (subject,) = (one for one in load_config(CORPUS_CONFIG).subjects if one.name == name)
    cases = OracleGate().cases(subject, seed=0, quick=False)
    chosen = [cases[at] for at in sorted({*np.linspace(0, len(cases) - 1, count).astype(int)})]
    once = bare_turns(subject, chosen) if kind == BARE else guarded_turns(subject, chosen)
    for _ in sys.stdin:
        sys.stdout.buffer.write(msgspec.json.encode(next(once)) + b"\n")
        sys.stdout.buffer.flush()


def bare_turns(subject: Subject, cases: Sequence[Case]) -> Iterator[list[Turn]]:
    """Run the original and the reference on each case, again and again."""
    operation = resolve_operation(subject.operation or "")
    entry = load_entry(subject)
    inputs = [make_inputs(operation, case) for case in cases]
    while True:
        found = []
        for case, given in zip(cases, inputs, strict=True):
            args = fresh_copy(given).args
            started = time.perf_counter()
            try:
                entry(*args)
            except Exception as error:
                found.append(Turn(case.id, failed=f"{type(error).__name__}: {error}"))
                continue
            middle = time.perf_counter()
            reference_results(operation, case, given)
            seconds = {BARE: middle - started, REFERENCE: time.perf_counter() - middle}
            found.append(Turn(case.id, seconds))
        yield found


def guarded_turns(subject: Subject, cases: Sequence[Case]) -> Iterator[list[Turn]]:
    """Judge the original by the oracle on each case, and observe it, again and again; then on all
    cases of the strategy, with their further runs."""
    interpreter.activate()
    whole = OracleGate().prepare(subject, seed=0, quick=False)
    wanted = {case.id for case in cases}
    alone = [one for one in whole.cases if one.case.id in wanted]
    entry = load_entry(subject)
    candidate = original(subject.name)
    while True:
        found = []
        for one in alone:
            oracle = replace(whole, cases=(one,), once=True)
            started = time.perf_counter()
            verdict = oracle.judge(candidate, stop_at_first=False)
            judged = time.perf_counter() - started
            assert verdict.outcome is GateOutcome.ACCEPTED, verdict.detail
            run = execute(entry, one.inputs, GuardPolicy.STRICT, whole.operation)
            started = time.perf_counter()
            sight_of(run, one.expected, False, RoundingInterval())
            seconds = {GUARDED: judged, OBSERVATION: time.perf_counter() - started}
            found.append(Turn(one.case.id, seconds))
        started = time.perf_counter()
        whole.judge(candidate, stop_at_first=False)
        whole_s = time.perf_counter() - started
        yield [*found, Turn(ALL_CASES, {ALL_CASES: whole_s / len(whole.cases)})]


@contextlib.contextmanager
def _process(name: str, kind: str, cases: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, __file__, "-", "--subject", name, "--turns", kind]
    with subprocess.Popen(
        [*command, "--cases", str(cases)],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _asked(process: subprocess.Popen[bytes]) -> list[Turn]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        sys.exit("a process ended before it answered; what it said stands above")
    return msgspec.json.decode(answer, type=list[Turn])


def _known(output: Path, mark: str) -> tuple[Row, ...]:
    """Rows that the same code has made."""
    with contextlib.suppress(FileNotFoundError):
        report = msgspec.json.decode(output.read_bytes(), type=Report)
        if report.fingerprint == mark:
            return report.rows
    return ()


def _write(output: Path, report: Report) -> None:
    partial = output.with_name(f"{output.name}.partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    partial.replace(output)


if __name__ == "__main__":
    main()
