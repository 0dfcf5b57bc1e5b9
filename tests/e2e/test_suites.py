"""Claims about examples/suites: what is weak about each is named, and nothing else is.

Each suite's expected.toml was written from the suite alone, before gatecert first ran on it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from gatecert.errors import ExitCode
from gatecert.gates.wiring.weaknesses import Weakness
from tests.e2e.commands import ROOT, gatecert

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUITES = {path.parent.name: path.parent for path in ROOT.glob("examples/suites/*/gatecert.toml")}
MUTANTS = ("--operator", "mask-bound-off-by-one", "--sample", "3")
"""A few of every kernel: weaknesses show on the original and on adversaries."""


def expected_of(name: str) -> dict[str, Any]:
    return tomllib.loads((SUITES[name] / "expected.toml").read_text(encoding="utf-8"))


def certificate_of(name: str, folder: Path) -> dict[str, Any]:
    """The certificate of a short run on a copy of the suite."""
    project, out = folder / name, folder / "out"
    shutil.copytree(SUITES[name], project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    arguments = ("--gate", "tests", "--no-oracle", *MUTANTS, "--jobs", "1")
    done = gatecert(project, "certify", *arguments, "--out", str(out))
    assert done.returncode == ExitCode.MET, done.stdout + done.stderr
    (path,) = out.glob("certificate*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_there_are_weak_suites_and_a_strong_one() -> None:
    weak = {name for name in SUITES if expected_of(name)["must_name"]}
    assert len(weak) >= 9
    assert set(SUITES) - weak == {"strong"}


def test_every_weakness_is_expected_of_some_suite() -> None:
    shown = {name for suite in SUITES for name in expected_of(suite)["must_name"]}
    assert shown == {weakness.value for weakness in Weakness}


@pytest.mark.parametrize("name", sorted(SUITES))
def test_an_expectation_speaks_of_every_weakness_once(name: str) -> None:
    expected = expected_of(name)
    spoken_of = expected["must_name"] + expected["may_name"] + expected["must_not_name"]
    assert sorted(spoken_of) == sorted(weakness.value for weakness in Weakness)
    assert set(expected["why"]) == set(spoken_of)


@pytest.mark.parametrize("name", sorted(SUITES))
def test_what_is_weak_about_a_suite_is_named_and_nothing_else(name: str, tmp_path: Path) -> None:
    expected, certificate = expected_of(name), certificate_of(name, tmp_path)
    assert certificate["gate"] == "tests"
    assert certificate["controls"]["rejected"] == 0
    evidence = {named["weakness"]: named["evidence"] for named in certificate["weaknesses"]}
    assert all(evidence.values())
    missed = set(expected["must_name"]) - set(evidence)
    wrong = {name: evidence[name] for name in set(expected["must_not_name"]) & set(evidence)}
    assert not missed and not wrong, f"missed {sorted(missed)}; wrong {wrong}"
