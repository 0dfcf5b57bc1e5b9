"""How many configurations an autotuned kernel has, and by which sizes they tile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTDATA = Path(__file__).parents[2] / "testdata"

PROBE = """
from gatecert.lanes import interpreter
interpreter.activate()
import kernels_wrong_in_one_config, kernels_softmax
from gatecert.lanes.interpreter.tuning import tuning_of
print(tuning_of({"kernels_wrong_in_one_config:row_softmax"}).configs)
print(tuning_of({"kernels_softmax:softmax_kernel"}).configs)
print(tuning_of().configs, tuning_of().tiles)
import triton
from kernels_wrong_in_one_config import row_softmax
row_softmax.configs.append(triton.Config({"BLOCK": 64, "GROUP": 3}))
print(tuning_of().configs, tuning_of().tiles)
"""


def test_the_configurations_of_the_launched_kernels_are_counted() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, cwd=TESTDATA, check=False
    )
    assert done.stdout.splitlines() == ["3", "1", "3 ()", "4 (64,)"], done.stderr
