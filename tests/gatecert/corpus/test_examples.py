"""Claims about examples/: what they call correct is correct, and their suites pass on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.config import load_config
from tests.gatecert.corpus.interpreted import environment, run, wrong

EXAMPLES = Path(__file__).parents[3] / "examples"
TEAM = EXAMPLES / "team" / "gatecert.toml"
LIGER = EXAMPLES / "liger" / "gatecert.toml"
OWN = [s for s in load_config(LIGER).subjects if ":" in str(s.operation)]


def test_the_teams_kernel_keeps_its_contract():
    (subject,) = load_config(TEAM).subjects
    rows = run(TEAM)[subject.name]
    assert not wrong(rows)
    assert {row["dtype"] for row in rows} == set(subject.dtypes)


def test_the_teams_suite_passes_on_the_teams_kernel():
    arguments = load_config(TEAM).gates["tests"].args
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=TEAM.parent,
        env=environment(TRITON_INTERPRET="1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.fixture(scope="module")
def liger():
    pytest.importorskip("liger_kernel", reason="extra [liger] is not installed")
    return {**run(LIGER), **_rows_of_own_operations()}


def _rows_of_own_operations():
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("own_operations.py")), str(LIGER)],
        env=environment(TRITON_INTERPRET="1"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("subject", load_config(LIGER).subjects, ids=lambda subject: subject.name)
def test_liger_agrees_with_float64(subject, liger):
    assert not wrong(liger[subject.name])
    assert {row["dtype"] for row in liger[subject.name]} >= set(subject.dtypes)


@pytest.mark.parametrize("subject", OWN, ids=lambda subject: subject.name)
def test_a_reference_of_the_examples_own_agrees_with_autograd(subject, liger):
    assert max(row["reference_error"] for row in liger[subject.name]) < 2.0**-40


def test_adapters_leave_alone_what_liger_overwrites():
    """Logits, and the two inputs that a backward pass of swiglu replaces by their gradients."""
    pytest.importorskip("liger_kernel", reason="extra [liger] is not installed")
    program = (
        "from gatecert.lanes.interpreter import activate; activate()\n"
        "import adapters, torch\n"
        "x = torch.arange(6.0).view(2, 3)\n"
        "adapters.cross_entropy(x, torch.tensor([1, -100]), torch.ones(3), 0.1, 1e-3, 30.0)\n"
        "adapters.swiglu(x, x, x, 0.75)\n"
        "assert x.tolist() == [[0, 1, 2], [3, 4, 5]], x\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=LIGER.parent,  # `python -c` imports from here
        env=environment(TRITON_INTERPRET="1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
