"""The workflow in examples/ci is YAML, asks for what exists, and keeps speed out of verdicts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from gatecert.cli.app import COMMANDS, group

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "ci"
COMMAND = re.compile(r"(?:^|[\s/])gatecert ((?:\S+)(?:\s+.*)?)$", re.MULTILINE)


def workflow() -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((FOLDER / "gatecert.yml").read_text(encoding="utf-8"))
    return found


def calls() -> list[list[str]]:
    """The arguments of every `gatecert ...` in the workflow and in the pages about it."""
    scripts = [
        str(step.get("run", "")) for job in workflow()["jobs"].values() for step in job["steps"]
    ]
    pages = [FOLDER / "README.md", ROOT / "docs" / "ci.md"]
    blocks = [
        block.replace("$ ", "")
        for page in pages
        for block in re.findall(
            r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
        )
    ]
    lines = [line for text in (*scripts, *blocks) for line in text.splitlines()]
    found = (COMMAND.search(line) for line in lines if "pip install" not in line)
    return [shlex.split(match[1], comments=True) for match in found if match]


def flags(command: click.Command) -> set[str]:
    return {name for p in command.params for name in (*p.opts, *p.secondary_opts)}


def test_there_is_something_to_check() -> None:
    assert len(calls()) >= 6


@pytest.mark.parametrize("call", calls(), ids=" ".join)
def test_every_command_and_option_exists(call: list[str]) -> None:
    name, *arguments = call
    assert name in COMMANDS
    command = group.get_command(click.Context(group), name)
    assert command is not None
    wanted = {a.partition("=")[0] for a in arguments if a.startswith("--")}
    assert wanted <= flags(command)


def test_every_option_of_a_part_and_of_publishing_is_explained() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for option in (
        "--in-diff", "--sample", "--time-budget", "--ratchet", "--update-ratchet", "--junit",
        "--annotations", "--no-annotations", "--json",
    ):  # fmt: skip
        assert f"`{option}" in text or f"{option} " in text, option


def test_jobs_without_a_gpu_run_the_tests_on_the_cpu() -> None:
    for job in workflow()["jobs"].values():
        on_cpu = job["runs-on"] == "ubuntu-latest"
        assert job.get("env", {}).get("DEVICE") == ("cpu" if on_cpu else None)


def test_a_pull_request_gets_a_diff_with_the_history_that_it_needs() -> None:
    job = workflow()["jobs"]["diff"]
    assert "pull_request" in job["if"]
    checkout = next(s for s in job["steps"] if s.get("uses", "").startswith("actions/checkout"))
    assert checkout["with"]["fetch-depth"] == 0
    (script,) = [s["run"] for s in job["steps"] if "certify" in s.get("run", "")]
    assert {"--in-diff", "--ratchet", "--annotations"} <= set(script.split())


def test_speed_is_a_job_of_its_own_that_no_verdict_waits_for() -> None:
    jobs = workflow()["jobs"]
    assert "gatecert" not in str([s.get("run") for s in jobs["gpu-speed"]["steps"]])
    for name, job in jobs.items():
        needed = job.get("needs", [])
        assert "gpu-speed" not in ([needed] if isinstance(needed, str) else needed), name
        if name != "gpu-speed":
            assert "benchmarks/" not in str([s.get("run") for s in job["steps"]])


def test_the_gpu_lane_runs_on_machines_of_ones_own() -> None:
    jobs = workflow()["jobs"]
    lanes = {name: job["runs-on"] for name, job in jobs.items()}
    assert {n for n, where in lanes.items() if "self-hosted" in where} == {
        "gpu-correctness",
        "gpu-speed",
    }
