"""A verdict is stale once anything that the gate read has changed: it is judged again."""

from __future__ import annotations

import json
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


def certify(folder: Path) -> tuple[set[str], Path]:
    """The statuses of the mutants of one operator, and the certificate."""
    arguments = ("--gate", "tests", "--no-oracle", "--operator", "wrong-pad-value")
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
