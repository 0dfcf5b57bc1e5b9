"""Claims about runs of a part, as continuous integration asks for them."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from gatecert.campaign.plan import Plan, gate_refs
from gatecert.campaign.progress import Silent
from gatecert.campaign.records import Status
from gatecert.campaign.run import run_campaign
from gatecert.certificate import Certificate, certify
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.errors import ExitCode
from gatecert.operators.registry import get_operator
from gatecert.store import Scope, recording
from tests.e2e.commands import ROOT, gatecert

OPERATORS = ("drop-store-mask", "wrong-pad-value", "dropped-mask-term")
CONFIG = """
[subject.softmax]
operation = "softmax"
entry = "kernels:softmax"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A committed project with one kernel."""
    kernels = (ROOT / "tests" / "testdata" / "kernels_softmax.py").read_text()
    (tmp_path / "kernels.py").write_text(kernels)
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    (tmp_path / ".gitignore").write_text("out/\n__pycache__/\n")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True)
    return tmp_path


def command(*more: str) -> list[str]:
    names = [part for name in OPERATORS[:2] for part in ("--operator", name)]
    return ["certify", "--quick", "--jobs", "1", "--out", "out", *names, *more]


def certificate(folder: Path, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / f"certificate-{run}.json").read_text())
    return found


@pytest.mark.timeout(600)
def test_of_a_diff_only_what_it_touches_is_judged_and_nothing_is_no_failure(
    repository: Path,
) -> None:
    done = gatecert(repository, *command("--in-diff", "HEAD"))
    assert done.returncode == ExitCode.MET, done.stderr
    assert "no file with a kernel has changed since HEAD" in done.stderr
    assert certificate(repository, "r1")["results"] == {}

    kernels = repository / "kernels.py"
    kernels.write_text(kernels.read_text().replace("element_ty), mask=mask)", "element_ty), mask)"))
    more = ("--ratchet", "ratchet.json", "--update-ratchet", "--junit", "out/junit.xml")
    done = gatecert(repository, *command("--in-diff", "HEAD", *more))
    assert done.returncode == ExitCode.MET, done.stderr
    found = certificate(repository, "r2")
    (planted,) = found["results"]
    assert "/drop-store-mask/" in planted
    assert found["controls"]["runs"] > 1
    assert found["adversaries"]["total"] > 0
    assert not (repository / "out" / "certificate.json").exists()
    known = json.loads((repository / "ratchet.json").read_text())
    assert known["gates"]["oracle"]["killed"] == [planted]
    (case,) = ET.parse(repository / "out" / "junit.xml").getroot().iter("testcase")
    assert list(case) == []

    marked = kernels.read_text().replace(
        "element_ty), mask)",
        "element_ty), mask)  # gatecert: ignore[drop-store-mask] the buffer is padded",
    )
    kernels.write_text(marked)
    done = gatecert(repository, *command("--in-diff", "HEAD", "--ratchet", "ratchet.json"))
    assert done.returncode == ExitCode.MET, done.stderr
    found = certificate(repository, "r3")
    assert found["results"][planted]["oracle"]["status"] == "ignored"
    assert found["ignored"][0]["reason"] == "the buffer is padded"
    assert found["ignored"][0]["path"] == "kernels.py"
    assert found["kill_rate"]["n"] == 0


def part(out: Path, **changes: Any) -> Certificate:
    """A run of one small subject under a weak gate, with the oracle beside it."""
    config = load_config(CORPUS_CONFIG)
    scope = Scope("certify", **{k: v for k, v in changes.items() if k != "jobs"})
    plan = Plan(
        root=Path(config.root),
        subjects=tuple(s for s in config.subjects if s.name == "leaky_relu"),
        gates=gate_refs(("allclose-one-shape", "oracle"), config.gates, config.root),
        operators=tuple(get_operator(name) for name in OPERATORS),
        quick=True,
        **changes,
    )
    with recording(out, scope) as record:
        run = run_campaign(plan, record, Silent())
        record.finish()
    return certify(run)


def statuses(found: Certificate) -> dict[str, Status]:
    return {name: by_gate[found.gate].status for name, by_gate in found.results.items()}


@pytest.mark.timeout(600)
def test_a_sample_judges_so_many_and_they_fare_as_in_the_whole_run(tmp_path: Path) -> None:
    whole = part(tmp_path)
    sample = part(tmp_path, sample=2)
    running = [s for s in statuses(whole).values() if s in (Status.KILLED, Status.SURVIVED)]
    assert len(running) > 2
    assert sample.selection.sample == 2
    assert sample.selection.sample_of >= len(running)
    drawn = {n: s for n, s in statuses(sample).items() if s is not Status.NOT_RUN}
    assert sample.mutants.killed + sample.mutants.survived == sample.kill_rate.n == 2
    assert all(statuses(whole)[name] is status for name, status in drawn.items())
    assert sample.kill_rate.low is not None
    assert sample.controls == whole.controls


@pytest.mark.timeout(600)
def test_when_the_time_is_over_controls_and_adversaries_have_run_and_the_rest_is_listed(
    tmp_path: Path,
) -> None:
    found = part(tmp_path, time_budget_s=1e-6)
    assert found.controls.runs > 1 and found.adversaries.total > 0
    assert found.kill_rate.n == 0
    assert found.selection.not_reached == found.mutants.not_run > 2
    listed = [line for line in found.not_tested if "--time-budget" in line]
    assert len(listed) == 2 * found.selection.not_reached
    again = part(tmp_path, time_budget_s=3600.0)
    assert again.selection.not_reached == 0
    assert not again.selection.sampled
