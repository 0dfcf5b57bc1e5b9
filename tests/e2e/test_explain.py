"""`certify --explain`: survivors are explained after judging, kept, and told everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import gatecert, project

GATE = """import torch


def gate(softmax):
    x = torch.rand(2, 16)
    return torch.allclose(softmax(x), torch.softmax(x, 1), atol=1e-6)
"""
TABLE = """
[gate.small]
kind = "callable"
callable = "small_gate:gate"
"""
CERTIFY = ("certify", "--gate", "small", "--no-oracle", "--jobs", "1")
MUTANTS = ("--operator", "wrong-pad-value", "--operator", "mask-bound-off-by-one")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = project(tmp_path_factory.mktemp("explain"), "kernels_one_block:softmax", more=TABLE)
    (made / "small_gate.py").write_text(GATE)
    plain = gatecert(made, *CERTIFY, *MUTANTS, "--out", "plain")
    assert plain.returncode == 0, plain.stderr
    done = gatecert(made, *CERTIFY, *MUTANTS, "--explain", "--explain-seconds", "60")
    assert done.returncode == 0, done.stderr
    assert "explain survivors" in done.stderr
    (made / "plain" / "said.txt").write_text(done.stdout)  # results are no files of the gate's
    return made


def certificate(folder: Path, out: str = "gatecert-out") -> dict[str, Any]:
    (path,) = (folder / out).glob("certificate*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_every_survivor_has_its_causes_and_the_evidence_for_them(folder: Path) -> None:
    survivors = certificate(folder)["survivors"]
    assert survivors
    for one in survivors:
        assert one["reason"] == one["because"][0]["cause"]
        assert one["because"][0]["said"]
        assert one["evidence"]["captured"]["calls"] == 1


def test_no_verdict_and_no_rate_depends_on_it(folder: Path) -> None:
    plain, told = certificate(folder, "plain"), certificate(folder)
    for key in ("results", "kill_rate", "mutants", "controls", "weaknesses"):
        assert plain[key] == told[key], key
    assert {one["reason"] for one in plain["survivors"]} == {"unexplained"}


def test_the_terminal_says_why(folder: Path) -> None:
    said = (folder / "plain" / "said.txt").read_text()
    for one in certificate(folder)["survivors"]:
        assert f"  why:     {one['because'][0]['said']}" in said


def test_show_says_why_too(folder: Path) -> None:
    one = certificate(folder)["survivors"][0]
    done = gatecert(folder, "show", one["id"])
    assert f"  reason:  {one['reason']}" in done.stdout
    assert one["because"][0]["said"] in done.stdout


def test_the_page_of_html_stands_by_itself_and_holds_every_card(folder: Path) -> None:
    done = gatecert(folder, "report", "--format", "html")
    assert done.stdout.startswith("<!doctype html>")
    for word in ("http://", "https://", "<script", "src="):
        assert word not in done.stdout
    for one in certificate(folder)["survivors"]:
        assert one["id"] in done.stdout


def test_a_second_run_takes_explanations_from_the_store(folder: Path) -> None:
    before = certificate(folder)["survivors"]
    done = gatecert(folder, *CERTIFY, *MUTANTS, "--explain", "--explain-seconds", "60")
    assert f"{len(before)} explanation" in done.stderr
    assert "taken from the store" in done.stderr
    latest = gatecert(folder, "report", "--format", "json")
    assert json.loads(latest.stdout)["survivors"] == before


def test_without_the_option_a_run_says_nothing_of_evidence(folder: Path) -> None:
    assert all(not one["because"] for one in certificate(folder, "plain")["survivors"])
