"""A small package of Triton kernels, written to a folder, for tests that import it for real."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

KERNELS = """\
import torch
import triton
import triton.language as tl

from .helpers import square

BLOCK = 64


@triton.heuristics({"EVEN": lambda args: args["n"] % BLOCK == 0})
@triton.jit
def _sum_squares_kernel(x_ptr, y_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32)
        total += square(x) * 1.0
    tl.store(y_ptr + row, tl.sum(total, axis=0))


def sum_squares(x):
    rows, n = x.shape
    y = torch.empty(rows, dtype=torch.float32)
    _sum_squares_kernel[(rows,)](x, y, n, BLOCK=BLOCK)
    return y
"""

HELPERS = """\
import triton
import triton.language as tl


@triton.jit
def square(x):
    return x * x
"""


def write_package(folder: Path, *, namespace: bool = False) -> Path:
    """`acme/kernels.py` and `acme/helpers.py` below `folder`; returns the package's folder."""
    package = folder / "acme"
    package.mkdir(parents=True)
    if not namespace:
        (package / "__init__.py").write_text("")
    (package / "kernels.py").write_text(KERNELS)
    (package / "helpers.py").write_text(HELPERS)
    return package


def run_python(
    script: str, *paths: Path, interpret: bool = True, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh process that can import gatecert and what lies in `paths`."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (*paths, REPOSITORY)))
    environment["OMP_NUM_THREADS"] = "1"
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    else:
        environment.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder and the hash of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
