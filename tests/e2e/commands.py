"""Run the command line as a person does, in another folder."""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from gatecert.cli import main

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 280
TESTED_SOFTMAX = """
[subject.softmax]
operation = "softmax"
entry = "acme.kernels:softmax"

[gate.tests]
kind = "pytest"
args = ["tests", "-q"]
"""
"""A configuration for the projects of `repositories`, with their tests as a gate."""


def environment() -> dict[str, str]:
    """Gatecert importable from any folder, installed or not."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def gatecert(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`gatecert ARGUMENTS` in the folder, within this process and with its warm servers."""
    said, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(errors):
        patch.chdir(folder)
        code = main(arguments)
    return subprocess.CompletedProcess(arguments, code, said.getvalue(), errors.getvalue())


def project(folder: Path, entry: str, operation: str = "softmax", more: str = "") -> Path:
    """A folder with a gatecert.toml for one subject of tests/testdata."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gatecert.toml").write_text(
        f'import_paths = ["{ROOT / "tests" / "testdata"}"]\n'
        f'[subject.softmax]\noperation = "{operation}"\nentry = "{entry}"\n{more}'
    )
    return folder
