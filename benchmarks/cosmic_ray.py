"""Mutants per minute beside cosmic-ray, and what each tool calls a kill.

Both plant in the same modules and judge with the same pytest suites, one after the other in one
run: cosmic-ray as its documentation says (a local distributor, one mutant at a time), gatecert as
`certify --gate tests --no-oracle`, with one job and with two. Needs cosmic-ray (pip install
cosmic-ray); it edits files in place, so each project is copied first.

Three rates of gatecert: over the whole command, and over its stage of judging, which includes all
runs of the suite on the original, of mutants alone and of all candidates (controls and adversaries
run the same suite). Of cosmic-ray the time of `exec`, without its `init` and `baseline`.

    python benchmarks/cosmic_ray.py [--project NAME ...] [--limit N]

Writes benchmarks/data/cosmic_ray.json, project by project. `--limit` takes a seeded sample of N of
cosmic-ray's mutants where all would take too long; the file says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "benchmarks" / "data" / "cosmic_ray.json"


@dataclass(frozen=True, slots=True)
class Project:
    """A project by its folder, the modules to plant in and its tests, relative to the folder."""

    folder: Path
    modules: tuple[str, ...]
    tests: str


PROJECTS = {
    "softmax": Project(ROOT / "benchmarks" / "softmax_project", ("row_softmax.py",), "tests"),
    "team": Project(ROOT / "examples" / "team", ("acme_kernels",), "tests"),
}
"""The first is the one that the comparison is about; the others stand beside it."""

KINDS = (
    ("does not compile or run in Triton", ("InterpreterError", "CompilationError")),
    ("a Python error outside the comparison", ("TypeError", "NameError", "AttributeError")),
    ("the values differ", ("Tensor-likes are not", "AssertionError", "assert ")),
)
"""What a failed test of cosmic-ray's shows, by words in its output, first match first."""


def main() -> None:
    """Measure, print, write after each project."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--project", action="append", choices=tuple(PROJECTS), default=[])
    parser.add_argument("--limit", type=int, default=0, help="at most so many of cosmic-ray's")
    options = parser.parse_args()
    record: dict[str, Any] = {"projects": {}}
    if OUTPUT.exists():
        record = json.loads(OUTPUT.read_text(encoding="utf-8"))
    record |= {"python": platform.python_version(), "cores": len(os.sched_getaffinity(0))}
    for name in options.project or PROJECTS:
        with tempfile.TemporaryDirectory() as scratch:
            theirs = _cosmic_ray(PROJECTS[name], Path(scratch), options.limit)
        ours = {}
        for jobs in (1, 2):
            with tempfile.TemporaryDirectory() as scratch:
                ours[f"jobs_{jobs}"] = _gatecert(PROJECTS[name], Path(scratch), jobs)
        record["projects"][name] = {
            "cosmic_ray": theirs,
            "gatecert": ours,
            "ratio": {
                jobs: {
                    "judging_candidates": round(
                        said["candidates_per_minute"] / theirs["per_minute"], 1
                    ),
                    "judging": round(said["judging_per_minute"] / theirs["per_minute"], 1),
                    "whole_command": round(said["per_minute"] / theirs["per_minute"], 1),
                }
                for jobs, said in ours.items()
            },
        }
        print(json.dumps({name: record["projects"][name]}, indent=2), flush=True)
        OUTPUT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _copy(project: Project, scratch: Path) -> Path:
    there = scratch / "project"
    skipped = shutil.ignore_patterns("__pycache__", ".pytest_cache", "gatecert-out")
    shutil.copytree(project.folder, there, ignore=skipped)
    return there


def _cosmic_ray(project: Project, scratch: Path, limit: int) -> dict[str, Any]:
    there = _copy(project, scratch)
    test = f"{sys.executable} -m pytest -x -q -p no:cacheprovider {project.tests}"
    modules = ", ".join(json.dumps(module) for module in project.modules)
    (there / "cosmic.toml").write_text(
        f"[cosmic-ray]\nmodule-path = [{modules}]\ntimeout = 120.0\nexcluded-modules = []\n"
        f"test-command = {json.dumps(test)}\n\n[cosmic-ray.distributor]\nname = 'local'\n",
        encoding="utf-8",
    )
    session = there / "session.sqlite"
    _cosmic("init", "cosmic.toml", session.name, cwd=there)
    total = _forget_all_but(session, limit)
    started = time.monotonic()
    _cosmic("exec", "cosmic.toml", session.name, cwd=there)
    seconds = time.monotonic() - started
    outcomes, kinds, count = _outcomes(_cosmic("dump", session.name, cwd=there))
    return {
        "planted": total,
        "judged": count,
        "seconds": round(seconds, 1),
        "per_minute": round(60 * count / seconds, 1),
        "outcomes": outcomes,
        "called_killed_because": kinds,
    }


def _cosmic(*args: str, cwd: Path) -> str:
    # One thread, as gatecert's children have: contention would be charged to the other tool.
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "cosmic_ray.cli", *args]
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed; is cosmic-ray installed?\n{done.stderr[-2000:]}")
    return done.stdout


def _forget_all_but(session: Path, limit: int) -> int:
    """Leave a seeded sample of cosmic-ray's mutants in its session; returns how many it had."""
    with sqlite3.connect(session) as store:
        jobs = [job for (job,) in store.execute("SELECT job_id FROM work_items ORDER BY job_id")]
        if limit and limit < len(jobs):
            kept = set(random.Random(0).sample(jobs, limit))
            for job in jobs:
                if job not in kept:
                    store.execute("DELETE FROM mutation_specs WHERE job_id = ?", (job,))
                    store.execute("DELETE FROM work_items WHERE job_id = ?", (job,))
    return len(jobs)


def _outcomes(dump: str) -> tuple[dict[str, int], dict[str, int], int]:
    outcomes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for line in dump.splitlines():
        _, result = json.loads(line)
        if result is None:
            continue
        said = f"{result['worker_outcome']}, {result['test_outcome']}"
        outcomes[said.replace("WorkerOutcome.", "").replace("TestOutcome.", "").lower()] += 1
        if "survived" not in said.lower():
            kinds[_kind(result.get("output") or "")] += 1
    return dict(outcomes), dict(kinds), sum(outcomes.values())


def _kind(output: str) -> str:
    for kind, words in KINDS:
        if any(word in output for word in words):
            return kind
    return "the process died" if "Fatal" in output or not output else "something else"


def _gatecert(project: Project, scratch: Path, jobs: int) -> dict[str, Any]:
    there = _copy(project, scratch)
    command = [sys.executable, "-m", "gatecert", "certify", "--gate", "tests"]
    command += ["--no-oracle", "--json", "--jobs", str(jobs), "--out", str(scratch / "out")]
    started = time.monotonic()
    done = subprocess.run(command, cwd=there, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    try:
        said = json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    counts = {status: n for status, n in said["mutants"].items() if n}
    planted = len(said["results"])
    judged = planted - said["mutants"]["unviable"] - said["mutants"]["not_observable"]
    candidates = judged + said["controls"]["runs"] + said["adversaries"]["total"]
    judging_s = said["timings_s"]["judge"]
    return {
        "planted": planted,
        "judged": judged,
        "controls_and_adversaries": candidates - judged,
        "seconds": round(seconds, 1),
        "judging_seconds": round(judging_s, 1),
        "per_minute": round(60 * judged / seconds, 1),
        "judging_per_minute": round(60 * judged / judging_s, 1),
        "candidates_per_minute": round(60 * candidates / judging_s, 1),
        "outcomes": counts,
    }


if __name__ == "__main__":
    main()
