"""Run the command line as a person does: another process, another folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
    """`gatecert ARGUMENTS` in the folder."""
    return subprocess.run(
        [sys.executable, "-m", "gatecert", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def project(folder: Path, entry: str, operation: str = "softmax", more: str = "") -> Path:
    """A folder with a gatecert.toml for one subject of tests/testdata."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gatecert.toml").write_text(
        f'import_paths = ["{ROOT / "tests" / "testdata"}"]\n'
        f'[subject.softmax]\noperation = "{operation}"\nentry = "{entry}"\n{more}'
    )
    return folder
