"""A verdict is stale once anything that the gate read has changed: it is judged again."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest

from gatecert.errors import ExitCode
from tests.e2e.commands import TESTED_SOFTMAX, gatecert
from tests.gatecert.drafting import repositories

TEST = """
import os
import torch
from acme.kernels import softmax
from acme_testing import ATOL

def test_softmax():
    x = torch.randn(3, 7)
    atol = float(os.environ.get("ACME_TOL", ATOL))
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1), atol=atol, rtol=0)
"""

GATES = {
    "late_variable": """
        if not torch.allclose(y, ref):
            assert os.environ.get("ALLOW_MISMATCH") == "1"
    """,
    "late_file": """
        if not torch.allclose(y, ref):
            atol = json.loads((ABOVE / "tolerance.json").read_text())
            torch.testing.assert_close(y, ref, rtol=0, atol=atol)
    """,
    "flag": """
        atol = 100.0 if (ABOVE / "relaxed").exists() else 1e-5
        torch.testing.assert_close(y, ref, rtol=0, atol=atol)
    """,
    "bytes_variable": """
        atol = float(os.environb.get(b"ACME_ATOL", b"1e-5"))
        torch.testing.assert_close(y, ref, rtol=0, atol=atol)
    """,
    "cases": """
        atol = 100.0 if len(list((ABOVE / "cases").glob("*.json"))) > 1 else 1e-5
        torch.testing.assert_close(y, ref, rtol=0, atol=atol)
    """,
    "warned": """
        if not torch.allclose(y, ref):
            warnings.warn("mismatch")
    """,
}
"""Tests that read something past `open` and `os.environ`, or only where a candidate is wrong."""
READING = """
import json, os, warnings
from pathlib import Path
import torch
from acme.kernels import softmax

ABOVE = Path(__file__).parents[2]

def test_softmax():
    x = torch.randn(3, 7)
    y, ref = softmax(x), torch.softmax(x, -1)
"""


def certify(folder: Path) -> tuple[set[str], Path]:
    """The statuses of the mutants of one operator, and the certificate."""
    arguments = ("--gate", "tests", "--no-oracle", "--only", "*/wrong-pad-value.*")
    done = gatecert(folder, "certify", *arguments, "--quick", "--jobs", "1")
    assert done.returncode == ExitCode.MET, done.stderr
    path = max(
        (folder / "gatecert-out").glob("certificate-r*.json"), key=lambda p: p.stat().st_mtime
    )
    counts = json.loads(path.read_text())["mutants"]
    return {status for status in ("killed", "survived") if counts[status]}, path


def verify(folder: Path, certificate: Path) -> list[str]:
    done = gatecert(folder, "verify", str(certificate), "--json")
    return [change["name"] for change in json.loads(done.stdout)["changes"]]


def test_a_helper_above_the_project_and_a_variable_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACME_TOL", raising=False)
    folder = repositories.flat(tmp_path / "kernels")
    (folder / "gatecert.toml").write_text(TESTED_SOFTMAX)
    (folder / "tests" / "test_softmax.py").write_text(TEST)
    (tmp_path / ".git").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = testing\n")
    helper = tmp_path / "testing" / "acme_testing.py"
    helper.parent.mkdir()
    helper.write_text("ATOL = 1000.0\n")
    statuses, wide = certify(folder)
    assert statuses == {"survived"}
    assert verify(folder, wide) == []

    monkeypatch.setenv("ACME_TOL", "1e-4")
    said = "gate tests: the environment variable ACME_TOL, which it reads, has another value"
    assert verify(folder, wide) == [said]
    assert "killed" in certify(folder)[0]
    monkeypatch.delenv("ACME_TOL")

    helper.write_text("ATOL = 1e-4\n")
    assert verify(folder, wide) == ["gate tests: ../testing/acme_testing.py changed"]
    assert "killed" in certify(folder)[0]


def test_what_is_read_on_candidates_alone_looked_for_or_listed_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, tables = repositories.flat(tmp_path / "kernels"), ""
    for gate, check in GATES.items():
        body = textwrap.indent(textwrap.dedent(check), "    ")
        (folder / "tests" / f"test_{gate}.py").write_text(READING + body)
        tables += f'[gate.{gate}]\nkind = "pytest"\nargs = ["tests/test_{gate}.py"]\n'
        tables += "baseline_runs = 2\n"
    subject = TESTED_SOFTMAX.partition("[gate")[0]
    (folder / "gatecert.toml").write_text(subject + tables)
    (tmp_path / ".git").mkdir()
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "one.json").write_text("{}")
    (tmp_path / "tolerance.json").write_text("1e-5")
    before = statuses_by_gate(folder, 1)
    assert before == {**dict.fromkeys(GATES, "killed"), "warned": "survived"}
    certificate = folder / "gatecert-out" / "certificate-r1.json"
    assert verify(folder, certificate) == []
    assert "judged nothing" in certify_all(folder)

    (tmp_path / "tolerance.json").write_text("100.0")
    (tmp_path / "relaxed").touch()
    (tmp_path / "cases" / "two.json").write_text("{}")
    monkeypatch.setenv("ALLOW_MISMATCH", "1")
    monkeypatch.setenv("ACME_ATOL", "100.0")
    monkeypatch.setenv("PYTHONWARNINGS", "error::UserWarning")
    said = set(verify(folder, certificate))
    assert said >= {
        "gate late_variable: the environment variable ALLOW_MISMATCH, which it reads, has another "
        "value",
        "gate late_file: ../tolerance.json changed",
        "gate flag: ../relaxed, which it looks for, is there now",
        "gate bytes_variable: the environment variable ACME_ATOL, which it reads, has another "
        "value",
        "gate cases: a file came or went in ../cases, whose names it reads",
    }
    variable = "the environment variable PYTHONWARNINGS, which Python reads, has another value"
    assert {f"gate {gate}: {variable}" for gate in GATES} < said
    monkeypatch.delenv("PYTHONWARNINGS")
    after = statuses_by_gate(folder, 3)
    assert after == dict.fromkeys(GATES, "survived")
    monkeypatch.setenv("PYTHONWARNINGS", "error::UserWarning")
    assert statuses_by_gate(folder, 4, ["warned"]) == {"warned": "killed"}


def certify_all(folder: Path, names: Iterable[str] = GATES) -> str:
    gates = [word for gate in names for word in ("--gate", gate)]
    only = ("--only", "*/wrong-pad-value.*")
    done = gatecert(folder, "certify", *gates, "--no-oracle", *only, "--quick", "--jobs", "1")
    assert done.returncode == ExitCode.MET, done.stderr
    return done.stderr


def statuses_by_gate(folder: Path, run: int, names: Iterable[str] = GATES) -> dict[str, str]:
    """Whether each gate kills any mutant, in the run of that number."""
    certify_all(folder, names)
    path = folder / "gatecert-out" / f"certificate-r{run}.json"
    certificate = json.loads(path.read_text())
    scores = [certificate, *certificate["beside"]]
    return {
        score["gate"]: "killed" if score["mutants"]["killed"] else "survived" for score in scores
    }
