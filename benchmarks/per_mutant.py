"""What one mutant costs under a pytest gate: gatecert against a pytest process per mutant.

Both judge the same mutants with the same tests, several rounds of them, in one run:

- `gatecert`: a child forked from the warm server, as `certify` does it;
- `processes`: `python -m pytest` started anew, the mutant put in place by the same overlay
  (a plugin loaded by `-p`), the interpreter corrected and guarded as in gatecert.

Prints medians with quartiles and writes benchmarks/data/per_mutant.json. What gatecert pays
once (starting and preparing the server) is told apart and also spread over the mutants.

    python benchmarks/per_mutant.py [--mutants 8] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gatecert.config import load_config
from gatecert.errors import GatecertError
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.discover import find_kernels
from gatecert.mutants.plant import apply_edits, plant
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.operators.registry import all_operators
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Failed, GateRef, Judged, Prepared, ShardRequest, Task
from gatecert.subjects import Subject

ROOT = Path(__file__).parents[1]
TEAM = ROOT / "examples" / "team"
OUTPUT = ROOT / "benchmarks" / "data" / "per_mutant.json"

_PLUGIN = """
import json, os
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from gatecert.mutants.overlay import install_overlay

interpreter.activate()
with open(os.environ["MUTANT"], encoding="utf-8") as mutant:
    install_overlay(json.load(mutant))
guard = interpreter.guarded(GuardPolicy.LENIENT)
guard.__enter__()
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=8, help="how many (default 8)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each (default 3)")
    asked = parser.parse_args()
    config = load_config(TEAM / "gatecert.toml")
    subject = config.subjects[0]
    gate = GateRef("tests", config.root, config.gates["tests"])
    candidates = list(mutants_of(subject))[: asked.mutants] * asked.rounds

    with Server() as server, tempfile.TemporaryDirectory() as scratch:
        started = time.perf_counter()
        ours = in_gatecert(server, subject, gate, candidates)
        whole_s = time.perf_counter() - started
        theirs = [
            in_a_process(c, gate.config.args if gate.config else (), Path(scratch))
            for c in candidates
        ]
    agreed = [
        (verdict.outcome is not GateOutcome.ACCEPTED) == failed
        for verdict, (failed, _) in zip(ours, theirs, strict=True)
    ]
    fast = summary([verdict.duration_s for verdict in ours])
    slow = summary([seconds for _, seconds in theirs])
    once_s = whole_s - sum(verdict.duration_s for verdict in ours)
    report = {
        "mutants": len({candidate.id for candidate in candidates}),
        "rounds": asked.rounds,
        "same_verdict": sum(agreed),
        "gatecert_s": fast,
        "gatecert_once_s": round(once_s, 3),
        "gatecert_all_s": round(whole_s, 3),
        "processes_s": slow,
        "processes_all_s": round(sum(seconds for _, seconds in theirs), 3),
        "ratio_of_medians": round(slow["median"] / fast["median"], 1),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))
    if not all(agreed):
        sys.exit("the two ways do not agree on every mutant, so their times do not compare")


def mutants_of(subject: Subject) -> Iterator[Candidate]:
    """Every mutant of the subject's module, in the catalogue's order."""
    path = TEAM / Path(*subject.entry_module.split(".")).with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    kernels, _ = find_kernels(subject.entry_module, str(path), text)
    for kernel in kernels:
        for mutant in plant(subject.name, kernel, text, all_operators()):
            mutated = {str(path): apply_edits(text, mutant.edits)}
            yield Candidate(mutant.id, CandidateKind.MUTANT, subject.name, mutated)


def in_gatecert(
    server: Server, subject: Subject, gate: GateRef, candidates: Sequence[Candidate]
) -> list[Verdict]:
    """A verdict per candidate, in order; `duration_s` is the whole life of the child."""
    tasks = tuple(Task(candidate, gate.name) for candidate in candidates)
    said = []
    for event in server.ask(ShardRequest(subject, (gate,), tasks)):
        if isinstance(event, Failed):
            raise GatecertError(event.message)
        if isinstance(event, Prepared):
            print(f"prepared in {event.seconds:.1f} s", file=sys.stderr)
        if isinstance(event, Judged):
            said.append(event.verdict)
    return said


def in_a_process(candidate: Candidate, args: Sequence[str], scratch: Path) -> tuple[bool, float]:
    """Whether the tests fail on the mutant, and the seconds that took."""
    (scratch / "overlay_plugin.py").write_text(_PLUGIN)
    mutant = scratch / "mutant.json"
    mutant.write_text(json.dumps(candidate.files))
    environment = {
        **os.environ,
        "MUTANT": str(mutant),
        "PYTHONPATH": os.pathsep.join([str(scratch), str(ROOT), str(TEAM)]),
        "TRITON_INTERPRET": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ours = ["-x", "-p", "no:cacheprovider", "-p", "overlay_plugin"]
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *args, *ours],
        cwd=TEAM,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 1):
        sys.exit(f"pytest ended with {done.returncode} on {candidate.id}:\n{done.stderr}")
    return done.returncode == 1, seconds


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """n, median and quartiles, in seconds."""
    low, median, high = statistics.quantiles(seconds, n=4)
    rounded = {"median": median, "lower_quartile": low, "upper_quartile": high}
    return {"n": len(seconds), **{name: round(value, 4) for name, value in rounded.items()}}


if __name__ == "__main__":
    main()
