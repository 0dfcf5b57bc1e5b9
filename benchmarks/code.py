"""What comparing compiled code costs and proves, over the corpus.

Every planted mutant is compared at both depths, by cold servers: optimised IR, which `certify` uses
for all, and machine code, which it uses for survivors. Prints the median and 90th percentile of the
time per mutant and signature on one core, and which mutants only machine code proves the same, and
writes it to OUTPUT. Subjects are compared side by side; each goes to OUTPUT.rows once it is done,
and the same command goes on where it stopped.

    python benchmarks/code.py benchmarks/data/code.json [--subject NAME ...] [--jobs 16]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import triton
from joblib import Parallel, delayed

from gatecert.campaign.code import compare_at_depth
from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.progress import Silent
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.supervise import server_pool
from gatecert.cli.setup import make_plan
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.mutants.compile_pool import compile_pool
from gatecert.mutants.records import CodeComparison, CodeDepth
from gatecert.store.keys import fingerprint


class Part(msgspec.Struct, frozen=True):
    """A subject's mutants at one depth; `fingerprint` is of the code that compared them."""

    fingerprint: str
    depth: CodeDepth
    subject: str
    said: tuple[CodeComparison, ...]


def main() -> None:
    """Compare what is missing, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    plan = make_plan(load_config(CORPUS_CONFIG), subject_names=options.subject, jobs=options.jobs)
    with server_pool(plan.jobs) as pool:
        planned = plan_campaign(plan, pool, Silent())
    rows = options.output.with_name(f"{options.output.name}.rows")
    mark = fingerprint([CORPUS_CONFIG.parent])
    parts = {(part.depth, part.subject): part for part in _known(rows, mark)}
    with rows.open("ab") as file:
        file.write(b"\n")  # the last line may have been cut short
        for depth in CodeDepth:
            missing = [one for one in planned if (depth, one.run.subject.name) not in parts]
            for name, said in compared(missing, depth, plan.jobs):
                parts[depth, name] = Part(mark, depth, name, said)
                file.write(msgspec.json.encode(parts[depth, name]) + b"\n")
                file.flush()
    names = [subject.run.subject.name for subject in planned]
    found = {
        depth: [said for name in names for said in parts[depth, name].said] for depth in CodeDepth
    }
    record = {"subjects": names, "jobs": plan.jobs, **report(found)}
    text = json.dumps(record, indent=2)
    print(text)
    options.output.write_text(f"{text}\n", encoding="utf-8")
    rows.unlink()


def compared(
    planned: Sequence[PlannedSubject], depth: CodeDepth, jobs: int
) -> Iterator[tuple[str, tuple[CodeComparison, ...]]]:
    """Each subject's comparisons at one depth, as they come.

    One subject alone would leave servers idle between its rounds; the largest begin first, so that
    no long one is left alone at the end.
    """
    with tempfile.TemporaryDirectory() as codes, compile_pool(jobs, Path(codes)) as pool:

        def one(subject: PlannedSubject) -> tuple[str, tuple[CodeComparison, ...]]:
            name = subject.run.subject.name
            said = compare_at_depth([subject], {name: subject.run.mutants}, pool, depth, Silent())
            return name, tuple(said[name].values())

        largest_first = sorted(planned, key=lambda subject: -len(subject.run.mutants))
        side_by_side = Parallel(jobs, backend="threading", return_as="generator_unordered")
        yield from side_by_side(delayed(one)(subject) for subject in largest_first)


def report(found: Mapping[CodeDepth, Sequence[CodeComparison]]) -> dict[str, Any]:
    """What both depths cost and said."""
    shallow, deep = (
        {said.mutant: said.verdict for said in comparisons} for comparisons in found.values()
    )
    return {
        "mutants": len(shallow),
        "python": platform.python_version(),
        "triton": triton.__version__,
        "depths": {depth.value: _summary(comparisons) for depth, comparisons in found.items()},
        "proven_by_machine_code_alone": {
            mutant: verdict.value
            for mutant, verdict in sorted(deep.items())
            if verdict is not shallow[mutant]
        },
    }


def _summary(comparisons: Sequence[CodeComparison]) -> dict[str, Any]:
    compiled = [said for said in comparisons if said.signatures_compiled]
    each = np.array([said.cpu_s / said.signatures_compiled for said in compiled])
    return {
        "verdicts": dict(Counter(said.verdict.value for said in comparisons)),
        "mutants": len(compiled),
        "signatures": sum(said.signatures_compiled for said in compiled),
        "settled_by_the_first_signature": sum(said.signatures_compiled == 1 for said in compiled),
        "cpu_ms_per_mutant_and_signature": {
            "median": round(1e3 * float(np.median(each)), 1),
            "p90": round(1e3 * float(np.percentile(each, 90)), 1),
            "largest": round(1e3 * float(each.max()), 1),
        },
        "cpu_s": round(sum(said.cpu_s for said in comparisons), 1),
        "seconds": round(sum(said.seconds for said in comparisons), 1),
    }


def _known(rows: Path, mark: str) -> Iterator[Part]:
    """What the same code has compared before; a line that was cut short is nothing."""
    lines = rows.read_bytes().splitlines() if rows.exists() else []
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError):
            part = msgspec.json.decode(line, type=Part)
            if part.fingerprint == mark:
                yield part


if __name__ == "__main__":
    main()
