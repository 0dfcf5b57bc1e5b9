"""Claims about the file of tolerances: it reads back equal, is versioned, and must be reviewed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gatecert.calibration.records import (
    LeftOut,
    Refused,
    Row,
    Tolerances,
    Tried,
    oracle_settings,
    read_tolerances,
)
from gatecert.calibration.write import render_tolerances
from gatecert.errors import UsageError
from gatecert.gates.config import OracleConfig
from gatecert.gates.oracle import OracleGate
from gatecert.gates.registry import make_gate
from gatecert.oracle.tolerance import RoundingInterval

ROW = Row(
    operation="softmax",
    dtype="float16",
    comparator={"type": "RoundingInterval", "constant": 8.0, "growth": "linear"},
    constant=8.0,
    kernels=("softmax_online", "torch-softmax"),
    controls=5,
    cases=60,
    runs=180,
    elements=123456,
    median=1e-07,
    p95=1.5,
    largest=3.25,
    largest_case='softmax_online/benign/"quoted" on softmax/float16/B=3,N=1/ties/seed=0',
    held_out={"seeds": Tried(40, 0, 2, 0, 0.8419)},
    left_out=(LeftOut("softmax_online", 8.0, 90, 0),),
)
FOUND = Tolerances(
    format=1,
    reviewed="",
    model="interval",
    envelope=1.5,
    lane="interpreter",
    strategy="certify",
    seeds=(0, 1, 2),
    held_out_seeds=(3, 4),
    gatecert="0.1.0",
    oracle_sha256="ab",
    sources_sha256={"softmax_online": "cd", "torch-acme.ops.add": "ef"},
    cases_sha256="01",
    row=(ROW,),
    refused=(Refused("gelu_erf", "float16", "1 of 1 kernels, in words: é"),),
)


def write(folder: Path, found: Tolerances) -> OracleConfig:
    (folder / "tolerances.toml").write_text(render_tolerances(found), encoding="utf-8")
    return OracleConfig(tolerances="tolerances.toml")


def test_what_is_written_reads_back_equal(tmp_path: Path) -> None:
    write(tmp_path, FOUND)
    assert read_tolerances(tmp_path / "tolerances.toml") == FOUND


def test_a_file_that_nobody_has_reviewed_is_refused(tmp_path: Path) -> None:
    config = write(tmp_path, FOUND)
    with pytest.raises(UsageError, match=r"nobody has reviewed it; .*reviewed = "):
        oracle_settings(config, tmp_path)


def test_a_reviewed_file_gives_the_gate_its_comparators(tmp_path: Path) -> None:
    config = write(tmp_path, msgspec.structs.replace(FOUND, reviewed="A. Reader, 2025-01-31"))
    gate = make_gate("oracle-mine", None, ".", None, oracle_settings(config, tmp_path))
    assert isinstance(gate, OracleGate)
    assert gate.rows == {("softmax", "float16"): RoundingInterval(constant=8.0)}
    assert gate.comparator == RoundingInterval()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("format = 1", "format = 2", r"format = 2, and this gatecert reads 1"),
        ("runs = 180", 'runs = "many"', r"row\[0\]\.runs|Expected `int`"),
        ("cases = 60", "case = 60", r"unknown field `case`|missing required field"),
        ("[[row]]", "[[row]", r"not valid TOML"),
    ],
)
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "tolerances.toml"
    path.write_text(render_tolerances(FOUND).replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        read_tolerances(path)


def test_a_missing_file_says_who_writes_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`gatecert calibrate` writes one"):
        oracle_settings(OracleConfig(tolerances="absent.toml"), tmp_path)
