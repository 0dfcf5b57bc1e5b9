"""Hold a certificate of the built-in corpus against what is promised of it.

Usage: python .ci/must_hold.py certificate.json; exits 1 at the first promise that is broken.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ELEMENTWISE = {"gelu_erf", "gelu_tanh", "leaky_relu"}
CLASSIC_OPERATORS = {
    "drop-load-mask",
    "drop-store-mask",
    "accumulator-overwrite",
    "missing-rescale",
}
CLASSIC_FACTOR = "dropped-factor.softmax-scale"
"""Tail mask, `acc =`, rescale, and the 1/sqrt(D) variant of the dropped factor."""


def main(path: str) -> None:
    """Check one promise after the other."""
    certificate: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    scored = _scored(certificate["mutants"])
    by_operator = {k: _scored(g["mutants"]) for k, g in certificate["by_operator"].items()}
    counts = certificate["mutants"]
    planted = sum(counts.values())
    unviable = counts["unviable"] / planted
    viable = planted - counts["unviable"] - counts["equivalent"] - counts["duplicate"]
    _hold(f"at least 1,000 viable mutants: {viable}", viable >= 1000)
    _hold(f"under 5% of planted mutants unviable: {unviable:.2%}", unviable < 0.05)
    _hold("at least 24 subjects", len(certificate["by_subject"]) >= 24)
    _hold("at least 25 operators", len(certificate["by_operator"]) >= 25)
    rate = certificate["kill_rate"]["value"]
    _hold(f"at least 97% of observable mutants killed: {rate:.2%}", rate >= 0.97)
    largest = max(by_operator.values()) / scored
    _hold(f"at most 40% from one operator: {largest:.0%}", largest <= 0.4)
    for name, group in certificate["by_subject"].items():
        count, needed = _scored(group["mutants"]), 4 if name in ELEMENTWISE else 8
        _hold(f"{name}: at least {needed} scored mutants: {count}", count >= needed)
    share = certificate["observable"]["share"]
    _hold(f"at least 75% of viable mutants observable: {share:.1%}", share >= 0.75)
    controls, adversaries = certificate["controls"], certificate["adversaries"]
    rejected = controls["rejected"] + controls["failed"]
    _hold(f"no control of {controls['runs']} rejected: {rejected}", rejected == 0)
    _hold("some controls compute other bits than the original", (controls["distinct"] or 0) > 0)
    accepted = adversaries["accepted"] + adversaries["inconclusive"]
    _hold(f"no adversary of {adversaries['total']} accepted: {accepted}", accepted == 0)
    classic = {
        mutant: result[certificate["gate"]]["status"]
        for mutant, result in certificate["results"].items()
        if _is_classic(mutant)
    }
    for mutant, status in classic.items():
        never = {"not_observable", "unviable", "equivalent", "duplicate"}
        _hold(f"{mutant}: killed if observable: {status}", status in {"killed"} | never)
    killed = sum(status == "killed" for status in classic.values())
    _hold(f"the classic families are there: {killed} killed", killed >= 40)
    _hold("every subject ran in every dtype", not certificate["not_tested"])
    _hold("nothing inconclusive", certificate["mutants"]["inconclusive"] == 0)
    _hold("no contradiction", not certificate["contradictions"])
    _hold("a weak gate stands beside", bool(certificate["beside"]))
    _hold("labels are hashed", len(certificate["environment"]["labels_sha256"]) == 64)


def _is_classic(mutant: str) -> bool:
    operator = mutant.split("/")[2]
    return operator.split(".")[0] in CLASSIC_OPERATORS or operator == CLASSIC_FACTOR


def _scored(counts: dict[str, int]) -> int:
    return counts["killed"] + counts["survived"]


def _hold(promise: str, holds: bool) -> None:
    print(f"{'holds' if holds else 'BROKEN'}: {promise}")
    if not holds:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
