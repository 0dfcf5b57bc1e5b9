"""Litters the project: says no if it finds what it left before, and spoils the kernels' file."""

from pathlib import Path

import kernels_softmax
from gate_compares import gate as compares

HERE = Path(__file__).parent


def gate(candidate):
    if Path("seen.txt").exists() or (HERE / "cache" / "seen.bin").exists():
        return False
    right = compares(candidate)
    Path("seen.txt").write_text("seen")
    (HERE / "cache").mkdir()
    (HERE / "cache" / "seen.bin").write_bytes(b"seen")
    Path(kernels_softmax.__file__).write_text("raise SystemExit('spoiled')\n")
    return right


def test_litters():
    assert gate(kernels_softmax.softmax)
