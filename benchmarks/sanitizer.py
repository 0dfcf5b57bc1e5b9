"""Does the sanitizer gate see a planted out-of-bounds read and a planted race on this GPU?

A tiny project (tests/testdata/project_sanitizer) has a CUDA softmax and a script that checks it.
The script runs under each tool of Compute Sanitizer, on the original and on variants with one
planted bug each, every one with the overlay and the verdict of the gate as `certify` uses them.
The tool for the job must flag each variant, and no tool may flag the original.

    python benchmarks/sanitizer.py OUTPUT.json

Needs a GPU, compute-sanitizer and torch with CUDA; takes under three minutes. Status 0: all as
expected; 2: not so; 4: the machine or the tool refused, and nothing is claimed.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gatecert.errors import EnvironmentFailure  # noqa: E402
from gatecert.gates.command.sanitizer import (  # noqa: E402
    PreparedSanitizer,
    SanitizerGate,
    find_tool,
)
from gatecert.gates.config import TOOLS, GateConfig  # noqa: E402
from gatecert.gates.records import GateOutcome, Verdict  # noqa: E402
from gatecert.mutants.records import Candidate, CandidateKind  # noqa: E402
from gatecert.sandbox.child import ChildEnd, run_in_child  # noqa: E402
from gatecert.subjects import Subject  # noqa: E402

PROJECT = ROOT / "tests" / "testdata" / "project_sanitizer"
SUBJECT = Subject("softmax", "rows:softmax", import_paths=(str(PROJECT),))
CHECK = GateConfig("command", command=("python", "check.py"))
VARIANTS = {
    "original": (None, "", ""),
    "out_of_bounds_read": (
        "memcheck",
        "if (col < n_cols) value = x[start + col];",
        "value = x[start + col]; if (col >= n_cols) value = -1e30f;",
    ),
    "shared_memory_race": (
        "racecheck",
        "    shared[col] = part;\n    __syncthreads();\n",
        "    shared[col] = part;\n",
    ),
    "uninitialised_read": (
        "initcheck",
        "y[start + col] = part / shared[0];",
        "y[start + col] = part / shared[0] + 0.0f * fminf(fmaxf(y[start + col], -1.0f), 1.0f);",
    ),
}
"""By name: the tool that is to flag it, and the edit."""
_RUN_S = 60.0
_ALL_S = 170.0


def main(output: Path) -> int:
    """Run every variant under every tool, and write what was said."""
    began = time.monotonic()
    found: dict[str, Any] = {"machine": describe_machine(), "verdicts": {}}
    status = 0
    try:
        gates = {tool: prepare(tool) for tool in TOOLS}
        for name, tool in in_order():
            if time.monotonic() - began > _ALL_S - _RUN_S:
                found["verdicts"].setdefault(name, {})[tool] = {"outcome": "not run: out of time"}
                continue
            said = judge(name, gates[tool])
            found["verdicts"].setdefault(name, {})[tool] = said
            print(f"{name:20} {tool:10} {said['outcome']:9} {said['detail']}", flush=True)
    except EnvironmentFailure as error:
        found["refused"] = str(error)
    found.setdefault("refused", refusal(found["verdicts"]))
    if found["refused"]:
        print(f"refused: {found['refused']}", flush=True)
        status = int(EnvironmentFailure.exit_code)
    else:
        found["as_expected"] = as_expected(found["verdicts"])
    found["seconds"] = round(time.monotonic() - began, 1)
    output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if status:
        return status
    print(json.dumps(found["as_expected"]), flush=True)
    return 0 if all(found["as_expected"].values()) else 2


def in_order() -> list[tuple[str, str]]:
    """What the claim rests on first: each bug under its tool, then the original, then the rest."""
    first = [(name, tool) for name, (tool, _, _) in VARIANTS.items() if tool]
    second = [("original", tool) for tool in TOOLS]
    rest = [(name, tool) for name in VARIANTS for tool in TOOLS]
    return list(dict.fromkeys((*first, *second, *rest)))


def judge(name: str, prepared: PreparedSanitizer) -> dict[str, Any]:
    """One variant under one tool."""
    _, old, new = VARIANTS[name]
    path = PROJECT / "rows.py"
    text = path.read_text(encoding="utf-8")
    files = {} if not old else {str(path): text.replace(old, new)}
    assert not old or text.count(old) == 1, name
    kind = CandidateKind.MUTANT if old else CandidateKind.ORIGINAL
    candidate = Candidate(name, kind, SUBJECT.name, files)

    def work() -> bytes:
        verdict, seen = prepared.run_elsewhere(candidate, files, stop_at_first=True)
        return msgspec.json.encode((verdict, seen.missed, seen.blind))

    result = run_in_child(work, timeout_s=_RUN_S)
    seconds = round(result.seconds, 1)
    if result.end is not ChildEnd.ANSWERED:
        last = f"{result.end.value}: {result.log[-500:]}"
        return {"outcome": "no answer", "detail": last, "seconds": seconds}
    verdict, missed, blind = msgspec.json.decode(
        result.answer, type=tuple[Verdict, tuple[str, ...], str]
    )
    return {
        "outcome": verdict.outcome.value,
        "detail": verdict.detail,
        "overlay_proven": not missed,
        "blind": blind,
        "seconds": seconds,
    }


def prepare(tool: str) -> PreparedSanitizer:
    """The gate with one tool.

    Raises:
        EnvironmentFailure: there is no tool or no GPU.
    """
    table = GateConfig("sanitizer", around="check", tools=(tool,))
    return SanitizerGate("sanitizer", table, CHECK, PROJECT).prepare(SUBJECT, seed=0, quick=False)


def refusal(verdicts: dict[str, dict[str, dict[str, Any]]]) -> str:
    """What a tool said where it does not work on this machine; "" where all do."""
    details = (said.get("detail", "") for by_tool in verdicts.values() for said in by_tool.values())
    return next((detail for detail in details if "refuses to work here" in detail), "")


def as_expected(verdicts: dict[str, dict[str, dict[str, Any]]]) -> dict[str, bool]:
    """Was each bug flagged by its tool, with proof that it ran, and the original by none?"""
    rejected, accepted = GateOutcome.REJECTED.value, GateOutcome.ACCEPTED.value
    flagged = {}
    for name, (tool, _, _) in VARIANTS.items():
        if tool is not None:
            said = verdicts.get(name, {}).get(tool, {})
            flagged[name] = said.get("outcome") == rejected and said.get("overlay_proven", False)
    clean = verdicts.get("original", {})
    flagged["original"] = all(clean.get(t, {}).get("outcome") == accepted for t in TOOLS)
    return flagged


def describe_machine() -> dict[str, str]:
    """What was run on, as far as programs tell."""
    torch = "import torch; print(torch.__version__, torch.version.cuda)"
    return {
        "gpu": _said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
        "sanitizer": _said(find_tool() or "compute-sanitizer", "--version"),
        "torch": _said(sys.executable, "-c", torch),
        "python": platform.python_version(),
    }


def _said(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "; ".join(lines[:6]) or f"status {done.returncode}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
