"""How long a run took and on what, out of its certificate.

    python benchmarks/timings.py CERTIFICATE OUTPUT --machine "2 cores, otherwise idle"

Kept apart from data/corpus.json, whose figures may come from a later run on a busy machine.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

COMPARING = ("compile", "compile survivors")
"""Stages that compare code; the run is timed without them."""


def main() -> None:
    """Extract, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("certificate", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--machine", required=True, help="what it ran on, in words")
    options = parser.parse_args()
    certificate = json.loads(options.certificate.read_text(encoding="utf-8"))
    timings = certificate["timings_s"]
    comparing_s = sum(timings[stage] for stage in COMPARING)
    scores = [certificate, *certificate["beside"]]
    judged = sum(_judged(certificate["results"], score) for score in scores)
    record = {
        "machine": options.machine,
        "environment": certificate["environment"],
        "subjects": len(certificate["subjects"]),
        "gates": [score["gate"] for score in scores],
        "mutants": len(certificate["results"]),
        "candidates_judged": judged,
        "total_s": timings["total"],
        "comparing_code_s": round(comparing_s, 3),
        "without_comparing_s": round(timings["total"] - comparing_s, 3),
        "judged_per_second": round(judged / timings["judge"], 2),
        "timings_s": timings,
    }
    text = json.dumps(record, indent=2) + "\n"
    options.output.write_text(text, encoding="utf-8")
    print(text, end="")


def _judged(results: dict[str, Any], score: dict[str, Any]) -> int:
    """Candidates of all kinds that a gate ran on; results of mutants that were not run are none."""
    ran = {"killed", "survived", "crashed", "timeout", "unreported", "inconclusive"}
    mutants = sum(
        score["gate"] in said and said[score["gate"]]["status"] in ran for said in results.values()
    )
    return int(mutants + score["controls"]["runs"] + score["adversaries"]["total"])


if __name__ == "__main__":
    main()
