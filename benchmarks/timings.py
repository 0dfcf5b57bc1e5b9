"""How long a run took and on what, out of its certificate.

    python benchmarks/timings.py CERTIFICATE OUTPUT --machine "2 cores, otherwise idle"

Kept apart from data/corpus.json, whose figures may come from a later run on a busy machine.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

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
    gates = [certificate["gate"], *(score["gate"] for score in certificate["beside"])]
    candidates = len(certificate["results"])
    record = {
        "machine": options.machine,
        "environment": certificate["environment"],
        "subjects": len(certificate["subjects"]),
        "gates": gates,
        "mutants": candidates,
        "total_s": timings["total"],
        "comparing_code_s": round(comparing_s, 3),
        "without_comparing_s": round(timings["total"] - comparing_s, 3),
        "mutants_per_second": round(candidates / timings["judge"], 2),
        "timings_s": timings,
    }
    text = json.dumps(record, indent=2) + "\n"
    options.output.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
