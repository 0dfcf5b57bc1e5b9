"""What comparing compiled code costs and proves, over the corpus.

Every planted mutant is compared at both depths, by cold servers that keep nothing: optimised
IR, which `certify` uses for all, and machine code, which it uses for survivors. Prints the median
and 90th percentile of the time per mutant and signature on one core, and which mutants only
machine code proves the same; writes benchmarks/data/code.json.

    python benchmarks/code.py [--subject NAME ...] [--jobs 2]
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import triton

from gatecert.campaign.code import compare_at_depth
from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.progress import Silent
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.supervise import server_pool
from gatecert.cli.setup import make_plan
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.mutants.compile_pool import compile_pool
from gatecert.mutants.records import CodeComparison, CodeDepth

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "benchmarks" / "data" / "code.json"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    plan = make_plan(load_config(CORPUS_CONFIG), subject_names=options.subject, jobs=options.jobs)
    with server_pool(plan.jobs) as pool:
        planned = plan_campaign(plan, pool, Silent())
    found = {depth: list(_compare(planned, depth, plan.jobs)) for depth in CodeDepth}
    verdicts = {
        depth: {said.mutant: said.verdict for said in comparisons}
        for depth, comparisons in found.items()
    }
    shallow, deep = (verdicts[depth] for depth in CodeDepth)
    record = {
        "subjects": [subject.run.subject.name for subject in planned],
        "mutants": len(shallow),
        "jobs": plan.jobs,
        "python": platform.python_version(),
        "triton": triton.__version__,
        "depths": {depth.value: _summary(comparisons) for depth, comparisons in found.items()},
        "proven_by_machine_code_alone": {
            mutant: verdict.value
            for mutant, verdict in sorted(deep.items())
            if verdict is not shallow[mutant]
        },
    }
    print(json.dumps(record, indent=2))
    if not options.subject:
        OUTPUT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _compare(
    planned: Sequence[PlannedSubject], depth: CodeDepth, jobs: int
) -> Iterable[CodeComparison]:
    with tempfile.TemporaryDirectory() as codes, compile_pool(jobs, Path(codes)) as pool:
        work = {subject.run.subject.name: subject.run.mutants for subject in planned}
        for said in compare_at_depth(planned, work, pool, depth, Silent()).values():
            yield from said.values()


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


if __name__ == "__main__":
    main()
