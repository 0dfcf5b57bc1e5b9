"""A team's pytest suite on both lanes of one GPU machine: the same mutants, cell by cell.

A copy of examples/team, with an autotuned kernel beside its softmax, is certified by its own
tests twice in one run: compiled on the GPU, a fresh process for each candidate (`lane = "cuda"`),
and in forks on Triton's interpreter. Then bugs are planted whose status is known (an illegal
address, a loop without an end, code that does not compile, ...), judged by the same suite and by
a command, and a subject without an operation is probed through it.

    python benchmarks/suite_on_device.py OUTPUT.json [--jobs N]

Needs a GPU, torch with CUDA and pytest; takes under eight minutes. Status 0: all as expected; 2:
not so; 4: the machine refused, and nothing is claimed.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import torch
import triton

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gatecert.campaign.plan import Plan, gate_refs  # noqa: E402
from gatecert.campaign.records import Run, SubjectRun  # noqa: E402
from gatecert.campaign.run import run_campaign  # noqa: E402
from gatecert.certificate.build import certify  # noqa: E402
from gatecert.certificate.records import Certificate, GateScore  # noqa: E402
from gatecert.config import Config, load_config  # noqa: E402
from gatecert.errors import EnvironmentFailure  # noqa: E402
from gatecert.gates.records import Verdict  # noqa: E402
from gatecert.lanes.cuda.gpu import describe_gpu  # noqa: E402
from gatecert.mutants.records import Candidate, CandidateKind  # noqa: E402
from gatecert.operators.registry import all_operators  # noqa: E402
from gatecert.sandbox.client import Server  # noqa: E402
from gatecert.sandbox.protocol import (  # noqa: E402
    Failed,
    Judged,
    Limits,
    Prepared,
    Probed,
    ProbeRequest,
    ShardRequest,
    Task,
)
from gatecert.store import Scope, recording  # noqa: E402
from gatecert.subjects import Subject  # noqa: E402

CONFIG = """\
[subject.softmax]
operation = "softmax"
entry = "acme_kernels.softmax:softmax"
dtypes = ["float32", "bfloat16"]
layouts = ["contiguous", "row_padded"]

[subject.tiled]
operation = "softmax"
entry = "acme_kernels.tiled:softmax"

[gate.gpu]
kind = "pytest"
args = ["tests", "-q"]
lane = "cuda"

[gate.tests]
kind = "pytest"
args = ["tests", "-q"]

[gate.script]
kind = "command"
command = ["python", "check.py"]
lane = "cuda"
baseline_runs = 1
"""
TILED_TESTS = """\
import pytest
import torch
from acme_kernels.tiled import softmax

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("columns", [64, 200, 513])
def test_agrees_with_torch(columns):
    torch.manual_seed(0)
    x = torch.randn(3, columns, device=DEVICE)
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=-1))
"""
CHECK = """\
import torch
from acme_kernels.softmax import softmax

x = torch.randn(4, 100, device="cuda")
torch.testing.assert_close(softmax(x), torch.softmax(x, dim=-1))
"""
STORE = "tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=mask)"
LAUNCH = "BLOCK_SIZE=triton.next_power_of_2(n_cols),"
MASK = "    mask = cols < n_cols\n"
ROWS = "    n_rows, n_cols = x.shape\n"
RETURN = "    return out\n"
FALLS_BACK = """\
    return out


_compiled = softmax


def softmax(x):
    try:
        return _compiled(x)
    except Exception:
        return torch.softmax(x, -1)
"""
COMPILES_NOT = "tl.no_such_function(x)"
PLANTED: Mapping[str, tuple[str, str, str]] = {
    "original": ("", "", "accepted"),
    "wrong_values": ("numerator / denominator", "numerator", "rejected"),
    "illegal_address": (STORE, STORE.replace("(out_ptrs", "(out_ptrs + (1 << 40)"), "crashed"),
    "misaligned_address": (
        STORE,
        "tl.store((out_ptrs.to(tl.int64) + 1).to(out_ptr.dtype), out, mask=mask)",
        "crashed",
    ),
    "device_assert": (MASK, f"{MASK}    tl.device_assert(cols < 1, 'beyond')\n", "crashed"),
    "endless_loop": (
        STORE,
        "turns = n_cols\n"
        "    while turns > 0:\n"
        "        tl.atomic_add(out_ptr + row, 0.0)\n"
        f"    {STORE}",
        "timeout",
    ),
    "does_not_compile": ("tl.exp(x)", COMPILES_NOT, "error"),
    "too_many_threads": (LAUNCH, f"{LAUNCH} num_warps=64,", "error"),
    "falls_back": (RETURN, FALLS_BACK, "error"),
    "process_dies": (ROWS, f"    import os\n    os.abort()\n{ROWS}", "crashed"),
}
"""By name: the edit of softmax.py, and what the suite and the command are to make of it.
`falls_back` does not compile either, and catches that."""
AGAIN = "wrong_values_again"
LIMIT_S = 40.0


def main() -> int:
    """Run all parts, print what they say, write the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--jobs", type=int, default=6)
    options = parser.parse_args()
    began = time.monotonic()
    record: dict[str, Any] = {
        "machine": {
            "gpu": describe_gpu(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "python": platform.python_version(),
        },
        "jobs": options.jobs,
    }
    with tempfile.TemporaryDirectory() as folder:
        config = load_config(write_project(Path(folder) / "project") / "gatecert.toml")
        try:
            record["run"] = run_both(config, Path(folder) / "out", options.jobs)
            parts = {"suite": "gpu", "command": "script"}
            with ThreadPoolExecutor(3) as threads:
                asked = {name: threads.submit(plant, config, gate) for name, gate in parts.items()}
                asked["probe"] = threads.submit(probe, config)
                record |= {name: one.result() for name, one in asked.items()}
            record["as_expected"] = as_expected(record)
        except EnvironmentFailure as error:
            record["refused"] = str(error)
    record["seconds"] = round(time.monotonic() - began, 1)
    options.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if "refused" in record:
        print(f"refused: {record['refused']}", flush=True)
        return int(EnvironmentFailure.exit_code)
    print(json.dumps(record["as_expected"]), record["seconds"], "s", flush=True)
    return 0 if all(record["as_expected"].values()) else 2


def write_project(folder: Path) -> Path:
    """The team's project with a second kernel, a script and the tables of three gates."""
    ignored = shutil.ignore_patterns("gatecert-out", "__pycache__", "*.toml")
    shutil.copytree(ROOT / "examples" / "team", folder, ignore=ignored)
    tiled = ROOT / "tests" / "testdata" / "kernels_autotuned.py"
    shutil.copy(tiled, folder / "acme_kernels" / "tiled.py")
    (folder / "tests" / "test_tiled.py").write_text(TILED_TESTS)
    (folder / "check.py").write_text(CHECK)
    (folder / "gatecert.toml").write_text(CONFIG)
    return folder


class Printed:
    """A progress that prints what is said, and each verdict's cost."""

    def stage(self, name: str, total: int) -> None:
        """A stage begins."""
        print(f"-- {name}: {total}", flush=True)

    def step(self, verdict: Verdict | None = None) -> None:
        """A verdict is there."""
        if verdict is not None:
            said = f"{verdict.gate:6} {verdict.outcome.value:9} {verdict.duration_s:5.1f} s"
            print(f"   {said} {verdict.candidate} {verdict.detail[:90]}", flush=True)

    def say(self, line: str) -> None:
        """Something is worth knowing."""
        print(f"   {line}", flush=True)


def run_both(config: Config, out: Path, jobs: int) -> dict[str, Any]:
    """Certify the suite on both lanes in one run."""
    root = Path(config.root)
    plan = Plan(
        root=root,
        subjects=config.subjects,
        gates=gate_refs(("gpu", "tests"), config.gates, config.root),
        operators=all_operators(),
        jobs=jobs,
        config=config,
    )
    started = time.monotonic()
    with recording(out, Scope("certify")) as record:
        run = run_campaign(plan, record, Printed())
        record.finish()
    certificate = certify(run)
    return {
        "seconds": round(time.monotonic() - started, 1),
        "timings_s": run.timings_s,
        "gates": {score.gate: figures(score) for score in (certificate, *certificate.beside)},
        "candidate_s": {gate: costs(run, gate) for gate in run.gates},
        "baseline": {part.subject.name: baseline_of(part) for part in run.subjects},
        "cells": cells(certificate),
        "differ": differing(certificate),
        "candidates": [row(verdict) for part in run.subjects for verdict in part.verdicts],
    }


def row(verdict: Verdict) -> dict[str, Any]:
    """One candidate under one gate."""
    return {
        "gate": verdict.gate,
        "candidate": verdict.candidate,
        "outcome": verdict.outcome.value,
        "seconds": round(verdict.duration_s, 2),
        "loaded": verdict.loaded,
        "case": verdict.case,
        "detail": verdict.detail,
    }


def figures(score: Certificate | GateScore) -> dict[str, Any]:
    """One gate's figures."""
    return {
        "lane": score.lane,
        "kill_rate": score.kill_rate.value,
        "detection_rate": score.detection_rate.value,
        "mutants": {name: n for name, n in msgspec.to_builtins(score.mutants).items() if n},
        "controls_rejected": score.controls.rejected,
        "controls_failed": score.controls.failed,
        "adversaries": [score.adversaries.total, list(score.adversaries.accepted_ids)],
        "weaknesses": sorted({one.weakness.value for one in score.weaknesses}),
    }


def costs(run: Run, gate: str) -> dict[str, float]:
    """Seconds per candidate that ran."""
    said = [v for part in run.subjects for v in part.verdicts if v.gate == gate and v.duration_s]
    seconds = [verdict.duration_s for verdict in said]
    return {
        "n": len(seconds),
        "median": round(statistics.median(seconds), 2),
        "least": round(min(seconds), 2),
        "most": round(max(seconds), 2),
    }


def baseline_of(part: SubjectRun) -> dict[str, Any]:
    """What the tests do on the original, by gate."""
    said = [v for v in part.verdicts if v.candidate.endswith("/original") and v.baseline]
    return {
        verdict.gate: {
            "seconds": round(verdict.duration_s, 2),
            "launches": verdict.launches,
            "uncompared": verdict.uncompared,
            "tests": msgspec.to_builtins(verdict.baseline.tests if verdict.baseline else ()),
        }
        for verdict in said
    }


def cells(certificate: Certificate) -> dict[str, list[str]]:
    """By mutant its status on the GPU and on the interpreter."""
    return {
        mutant: [said[gate].status.value if gate in said else "-" for gate in ("gpu", "tests")]
        for mutant, said in certificate.results.items()
    }


def differing(certificate: Certificate) -> dict[str, list[str]]:
    """The cells in which the lanes differ, with what the gates say."""
    return {
        mutant: [f"{said[gate].status.value}: {said[gate].detail}" for gate in ("gpu", "tests")]
        for mutant, said in certificate.results.items()
        if said["gpu"].status is not said["tests"].status
    }


def plant(config: Config, gate: str) -> dict[str, Any]:
    """What a gate makes of every planted bug."""
    request = ShardRequest(
        subject=config.subjects[0],
        gates=gate_refs((gate,), config.gates, config.root),
        tasks=tuple(Task(candidate, gate) for candidate in candidates(config)),
        limits=Limits(factor=0.0, minimum_s=LIMIT_S),
    )
    found: dict[str, Any] = {"prepared": []}
    started = time.monotonic()
    with Server() as server:
        for event in server.ask(request):
            if isinstance(event, Failed):
                raise EnvironmentFailure(event.message)
            if isinstance(event, Prepared):
                found["prepared"].append([round(event.seconds, 1), *event.notes])
            if isinstance(event, Judged):
                verdict = event.verdict
                found[verdict.candidate] = {
                    "outcome": verdict.outcome.value,
                    "seconds": round(verdict.duration_s, 1),
                    "case": verdict.case,
                    "loaded": verdict.loaded,
                    "launches": verdict.launches,
                    "detail": verdict.detail,
                }
                print(f"   {gate:6} {verdict.candidate:20} {found[verdict.candidate]}", flush=True)
    found["seconds"] = round(time.monotonic() - started, 1)
    return found


def candidates(config: Config) -> Iterator[Candidate]:
    """The original and every planted bug; the last one shows that the GPU is fit after them."""
    path = Path(config.root, "acme_kernels", "softmax.py")
    text = path.read_text(encoding="utf-8")
    for name in (*PLANTED, AGAIN):
        old, new, _ = PLANTED.get(name, PLANTED["wrong_values"])
        if not old:
            yield Candidate(name, CandidateKind.ORIGINAL, "softmax")
            continue
        assert text.count(old) == 1, name
        mutated = text.replace(old, new)
        if name == "falls_back":
            mutated = mutated.replace("tl.exp(x)", COMPILES_NOT)
        if name == "device_assert":
            mutated = mutated.replace("@triton.jit", "@triton.jit(debug=True)")
        yield Candidate(name, CandidateKind.MUTANT, "softmax", {str(path): mutated})


def probe(config: Config) -> dict[str, Any]:
    """What the suite shows of a subject that has no operation."""
    tiled = config.subjects[1]
    subject = Subject("tiled", tiled.entry, import_paths=tiled.import_paths)
    (ref,) = gate_refs(("gpu",), config.gates, config.root)
    started = time.monotonic()
    with Server() as server:
        for event in server.ask(ProbeRequest(subject, ref)):
            if isinstance(event, Failed):
                raise EnvironmentFailure(event.message)
            if isinstance(event, Probed):
                launches = event.launches
                return {
                    "seconds": round(time.monotonic() - started, 1),
                    "modules": sorted(event.modules),
                    "launches": sorted({f"{x.kernel} {x.types} {x.constexprs}" for x in launches}),
                }
    return {}


def as_expected(record: Mapping[str, Any]) -> dict[str, bool]:
    """Does every planted bug have its status, and is the run sound?"""
    expected = {name: outcome for name, (_, _, outcome) in PLANTED.items()}
    expected["softmax/original"] = expected.pop("original")
    expected[AGAIN] = expected["wrong_values"]
    said = {
        f"{part} {name}": record[part].get(name, {}).get("outcome") == outcome
        for part in ("suite", "command")
        for name, outcome in expected.items()
    }
    gates = record["run"]["gates"].values()
    return said | {
        "controls": not any(g["controls_rejected"] + g["controls_failed"] for g in gates),
        "adversaries": not any(g["adversaries"][1] for g in gates),
        "lanes": [gate["lane"] for gate in gates] == ["cuda", "interpreter"],
        "all loaded": all(row["loaded"] for row in record["run"]["candidates"]),
        "probed": any("tiled_kernel" in one for one in record["probe"]["launches"]),
    }


if __name__ == "__main__":
    sys.exit(main())
