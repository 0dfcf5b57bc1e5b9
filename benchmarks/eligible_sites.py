"""How many of the sites that a person counted are planted.

`data/eligible_sites.json` holds a count by hand of every eligible site on ten named kernels, made
from their sources before the operators were held against it. A counted site is planted if its
operator plants, on its line, as many places (and in its variant, where the count tells variants
apart) as were counted there. Prints the share by operator and by kernel, and what was missed;
writes data/planted_sites.json. Fails where a counted source is no longer the installed one.

    python benchmarks/eligible_sites.py [--missed]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gatecert.mutants.discover import find_kernels, find_launchers
from gatecert.mutants.launchers import Sources
from gatecert.mutants.plant import plant, plant_in_launcher
from gatecert.mutants.records import Mutant
from gatecert.operators.registry import all_operators

DATA = Path(__file__).parent / "data"
Place = tuple[str, int, str]
"""Operator, line, variant ("" where the count does not tell variants apart)."""


def main() -> int:
    """Compare, print, write; 1 where a source has changed since it was counted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--missed", action="store_true", help="list every site not planted")
    options = parser.parse_args()
    counted = json.loads((DATA / "eligible_sites.json").read_text(encoding="utf-8"))
    by_operator: dict[str, Counter[str]] = defaultdict(Counter)
    by_kernel: dict[str, Counter[str]] = defaultdict(Counter)
    missed: list[str] = []
    for entry in counted["kernels"]:
        module, _, qualname = entry["kernel"].partition(":")
        path, text = _source(module)
        if hashlib.sha256(text.encode()).hexdigest() != entry["source_sha256"]:
            print(f"{module}: not the source that was counted", file=sys.stderr)
            return 1
        told_apart = {site["operator"] for site in entry["sites"] if site["variant"]}
        wanted = Counter(_wanted(entry["sites"]))
        planted = _planted(_mutants(module, path, text, qualname), text, told_apart)
        for place, number in sorted(wanted.items()):
            found = min(number, planted[place])
            for group in (by_operator[place[0]], by_kernel[entry["kernel"]]):
                group["counted"] += number
                group["planted"] += found
            if found < number:
                missed.append(f"{entry['kernel']} line {place[1]}: {place[0]} {place[2]}".strip())
    total = sum(by_operator.values(), Counter())
    record = {
        "counted": total["counted"],
        "planted": total["planted"],
        "share": round(total["planted"] / total["counted"], 4),
        "operators": {name: dict(group) for name, group in sorted(by_operator.items())},
        "kernels": {name: dict(group) for name, group in by_kernel.items()},
        "missed": missed,
    }
    for name, group in (*sorted(by_operator.items()), *by_kernel.items(), ("all", total)):
        share = group["planted"] / group["counted"]
        print(f"{name}: {group['planted']} of {group['counted']} ({share:.1%})")
    if options.missed:
        print("\n".join(missed))
    (DATA / "planted_sites.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


def _source(module: str) -> tuple[str, str]:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return spec.origin, Path(spec.origin).read_text(encoding="utf-8")


def _wanted(sites: Iterable[dict[str, Any]]) -> Iterable[Place]:
    for site in sites:
        yield site["operator"], site["line"], site["variant"]


def _mutants(module: str, path: str, text: str, qualname: str) -> list[Mutant]:
    """What is planted in one kernel, and in the corpus's launchers of it."""
    kernels, _ = find_kernels(module, path, text)
    (kernel,) = [k for k in kernels if k.qualname == qualname]
    found = plant("counted", kernel, text, all_operators())
    sources = Sources({module: path}, {path: text}, {k.name: k for k in kernels})
    for launcher in find_launchers(module, path, text):
        if kernel.name in launcher.launches and module.startswith("gatecert."):
            found += plant_in_launcher("counted", launcher, sources, all_operators())
    return found


def _planted(mutants: Iterable[Mutant], text: str, told_apart: set[str]) -> Counter[Place]:
    """Distinct places by operator, line and variant; an edit stands on every line that it
    touches.

    Several variants of an operator at one place are one; without variants each edit is one.
    """
    places: dict[Place, set[tuple[int, int, str]]] = defaultdict(set)
    for mutant in mutants:
        lines = {mutant.line}
        for edit in mutant.edits:
            first_line = text.count("\n", 0, edit.start) + 1
            lines |= set(range(first_line, text.count("\n", 0, edit.end) + 2))
        for operator in (mutant.operator, *mutant.also):
            variant = mutant.variant if operator in told_apart else ""
            for line in lines:
                first = mutant.edits[0]
                text_put_in = "" if mutant.variant else first.text
                places[operator, line, variant].add((first.start, first.end, text_put_in))
    return Counter({place: len(spans) for place, spans in places.items()})


if __name__ == "__main__":
    sys.exit(main())
