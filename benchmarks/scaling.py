"""One job against two on the run part: the same campaign, judged anew each time, pairs in turn.

Prints each pair and writes benchmarks/data/scaling.json after it, so that a stopped measurement
goes on. The run part is the stage `judge` of `certify`, gates prepared and processes forked in it.

    python benchmarks/scaling.py [--pairs 5] [--subject NAME ...] [--machine WORDS]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OUTPUT = Path(__file__).parent / "data" / "scaling.json"
SUBJECTS = ("leaky_relu", "silu", "dequantize_int8", "embedding", "dropout", "swiglu")


def main() -> None:
    """Measure what is missing, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--machine", default="", help="what it runs on, for the record")
    options = parser.parse_args()
    subjects = tuple(options.subject) or SUBJECTS
    pairs: list[dict[str, float]] = []
    if OUTPUT.exists():
        known = json.loads(OUTPUT.read_text(encoding="utf-8"))
        same = tuple(known["subjects"]) == subjects and known.get("machine") == options.machine
        pairs = known["pairs"] if same else []
    while len(pairs) < options.pairs:
        one, two = (_judge_s(subjects, jobs) for jobs in (1, 2))
        pairs.append({"one_job_s": one, "two_jobs_s": two, "ratio": round(one / two, 3)})
        print(json.dumps(pairs[-1]), flush=True)
        record = {
            "subjects": subjects,
            "machine": options.machine,
            "python": platform.python_version(),
            "pairs": pairs,
            "n": len(pairs),
            "median_ratio": statistics.median(pair["ratio"] for pair in pairs),
            "smallest_ratio": min(pair["ratio"] for pair in pairs),
            "largest_ratio": max(pair["ratio"] for pair in pairs),
        }
        OUTPUT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _judge_s(subjects: tuple[str, ...], jobs: int) -> float:
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "gatecert", "certify", "--gate", "oracle", "--json"]
        command += ["--jobs", str(jobs), "--out", out]
        command += [part for subject in subjects for part in ("--subject", subject)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            return float(json.loads(done.stdout)["timings_s"]["judge"])
        except (ValueError, KeyError):
            sys.exit(f"certify failed: {done.stderr.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
