"""`calibrate` on a team's kernel: fit, go on, review, and use the file as a gate."""

from __future__ import annotations

import json
from pathlib import Path

from gatecert.calibration.records import read_tolerances
from gatecert.errors import ExitCode
from tests.e2e.commands import ROOT, gatecert

CONFIG = """
[subject.mine]
operation = "leaky_relu"
entry = "kernels:leaky_relu"

[oracle.ours]
strategy = "regular"
tolerances = "out/tolerances.toml"

[oracle.blind]
strategy = "regular"
comparator = { type = "Absolute", atol = 2.0 }
"""
SMALL = ("calibrate", "--strategy", "boundary", "--seeds", "2", "--held-out-seeds", "1", "--json")
CONTROLS = ("controls", "--seeds", "1", "--out", "asked", "--gate")


def team(folder: Path, old: str = "", new: str = "") -> Path:
    """A leaky ReLU and its configuration; with one change if told."""
    text = (ROOT / "tests/testdata/kernels_fixed_block.py").read_text()
    assert old in text
    (folder / "kernels.py").write_text(text.replace(old, new) if old else text)
    (folder / "gatecert.toml").write_text(CONFIG)
    return folder


def test_a_file_is_fitted_reviewed_and_used_as_a_gate(tmp_path: Path) -> None:
    team(tmp_path)
    done = gatecert(tmp_path, *SMALL, "--jobs", "1", "--out", "out")
    assert done.returncode == ExitCode.MET, done.stderr
    (row,) = json.loads(done.stdout)["row"]
    assert (row["operation"], row["dtype"]) == ("leaky_relu", "float32")
    assert row["kernels"] == ["corpus-leaky_relu", "mine", "torch-leaky_relu"]
    assert 0.0 < row["largest"] < row["constant"] == 8.0

    again = gatecert(tmp_path, *SMALL, "--jobs", "1", "--out", "out")
    assert again.stdout == done.stdout
    first, second = json.loads(gatecert(tmp_path, "runs", "list", "--out", "out", "--json").stdout)
    assert first["tasks"] == second["tasks"] == second["verdicts"] > 0

    refused = gatecert(tmp_path, *CONTROLS, "oracle-ours", "--jobs", "1")
    assert refused.returncode == ExitCode.USAGE
    assert "nobody has reviewed it" in refused.stderr
    file = tmp_path / "out" / "tolerances.toml"
    file.write_text(file.read_text().replace('reviewed = ""', 'reviewed = "A. Reader"'))
    assert read_tolerances(file).row[0].constant == row["constant"]
    assert gatecert(tmp_path, *CONTROLS, "oracle-ours", "--jobs", "1").returncode == ExitCode.MET


def test_a_kernel_that_disagrees_is_not_fitted_to_but_a_wide_oracle_accepts_it(
    tmp_path: Path,
) -> None:
    team(tmp_path, "x * slope", "x * (slope + 1e-4)")
    done = gatecert(tmp_path, *SMALL, "--jobs", "1", "--out", "out")
    assert done.returncode == ExitCode.ENVIRONMENT_FAILED
    assert "mine/original disagrees with its reference" in done.stderr
    assert "no tolerance to fit" in done.stderr
    assert not (tmp_path / "out" / "tolerances.toml").exists()
    asked = (
        gatecert(tmp_path, *CONTROLS, name, "--jobs", "1") for name in ("oracle-blind", "oracle")
    )
    assert [one.returncode for one in asked] == [ExitCode.MET, ExitCode.CONTROL_REJECTED]
