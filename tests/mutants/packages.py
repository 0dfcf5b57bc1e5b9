"""A small package of Triton kernels, written to a folder, for tests that import it for real."""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
_PRELOAD = ["torch", "triton.language", "triton.runtime.interpreter"]
_LIMIT_S = 120.0

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
    script: str, *paths: Path, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script where gatecert and what lies in `paths` can be imported, as in a fresh process
    with the interpreter on: in a fork of one that has imported torch and Triton, and runs nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        said, errors = Path(folder, "stdout"), Path(folder, "stderr")
        child = _warm().Process(target=_execute, args=(script, paths, cwd, said, errors))
        child.start()
        child.join(_LIMIT_S)
        if child.exitcode is None:
            child.kill()
            raise TimeoutError(f"no end within {_LIMIT_S} s: {said.read_text()}")
        return subprocess.CompletedProcess(
            script, child.exitcode, said.read_text(), errors.read_text()
        )


@functools.cache
def _warm() -> ForkServerContext:
    """Its processes are forks of one that was started with the interpreter on."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        forkserver.ensure_running()
    return context


def _execute(
    script: str, paths: Sequence[Path], cwd: Path | None, said: Path, errors: Path
) -> None:
    for descriptor, path in ((1, said), (2, errors)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), descriptor)
    sys.dont_write_bytecode = False
    sys.path[:0] = map(str, (*paths, REPOSITORY))
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (*paths, REPOSITORY)))
    if cwd is not None:
        os.chdir(cwd)
    exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder and the hash of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
