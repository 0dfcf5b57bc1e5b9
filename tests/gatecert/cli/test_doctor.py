"""`doctor` finds what is wrong and says it in a line."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from pathlib import Path

import pytest

from gatecert.cli import main
from gatecert.cli.doctor import Check, checks
from gatecert.errors import ExitCode


def found(out: Path) -> dict[str, Check]:
    return {check.name: check for check in checks(out)}


def test_this_machine_can_do_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--out", str(tmp_path)]) == ExitCode.MET
    document = json.loads(capsys.readouterr().out)
    assert all(check["ok"] for check in document)
    assert {"interpreter lane", "gpu"} <= {check["name"] for check in document}


def test_a_version_outside_the_ranges_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"triton": "3.5.0"}
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: versions.get(name, real(name)))
    check = found(tmp_path)["packages"]
    assert not check.ok
    assert check.found.startswith("triton 3.5.0 is outside")


def test_a_kernel_with_a_wrong_answer_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = subprocess.CompletedProcess([], 1, "", "wrong result\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: wrong)
    assert main(["doctor", "--out", str(tmp_path)]) == ExitCode.ENVIRONMENT_FAILED
    assert "a kernel with a known answer failed: wrong result" in capsys.readouterr().out


def test_pytest_is_named_and_its_absence_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(tmp_path)["pytest"].found.startswith("pytest ")
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "pytest":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    check = found(tmp_path)["pytest"]
    assert check.ok
    assert "pip install pytest" in check.found
