"""Claims about what is told of compiled launches, with a stand-in for the GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """By case what the script of `compiled` prints, in a process that interprets nothing."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "tests.gatecert.lanes.compiled"],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_launch_is_described_as_on_the_interpreter(told: dict[str, Any]) -> None:
    (launch,) = told["tuple"]["launches"]
    assert launch["kernel"].endswith(":copy")
    assert launch["grid"] == [2, 3, 1]
    assert launch["types"] == [["x_ptr", "*fp32"], ["y_ptr", "*fp32"], ["n", "i32"]]
    assert launch["constexprs"] == [["BLOCK", 32]]
    assert launch["integers"] == [["n", 16]]
    assert launch["num_warps"] == 8
    assert launch["launcher"][0].endswith("compiled.py")


def test_a_grid_that_is_a_function_is_asked_with_the_arguments(told: dict[str, Any]) -> None:
    (launch,) = told["callable"]["launches"]
    assert launch["grid"] == [4, 1, 1]


def test_warming_up_is_no_launch(told: dict[str, Any]) -> None:
    assert told["warmup"] == {"launches": [], "failures": [], "shown": [], "raised": ""}


def test_of_an_autotuned_kernel_the_chosen_launch_counts_and_no_failed_configuration(
    told: dict[str, Any],
) -> None:
    (launch,) = told["autotuned"]["launches"]
    assert launch["constexprs"] == [["BLOCK", 64]]
    assert told["autotuned"]["failures"] == []
    assert told["autotuned"]["raised"] == ""


def test_a_kernel_that_warming_up_has_compiled_is_told_of_when_it_is_launched(
    told: dict[str, Any],
) -> None:
    (launch,) = told["compiled"]["launches"]
    assert launch["kernel"].endswith(":copy")
    assert launch["grid"] == [7, 1, 1]
    assert launch["constexprs"] == [["BLOCK", 32]]
    assert (launch["num_warps"], launch["num_stages"]) == (2, 5)
    assert told["compiled"]["shown"] == told["tuple"]["shown"]
    assert told["compiled"]["raised"] == ""


def test_an_adversary_that_silences_kernels_silences_all_of_them(told: dict[str, Any]) -> None:
    assert told["silenced"] == {"launches": [], "failures": [], "shown": [], "raised": ""}


def test_what_does_not_fit_the_gpu_is_a_failure_also_for_who_catches_it(
    told: dict[str, Any],
) -> None:
    said = told["too large"]
    assert said["raised"] == "OutOfResources"
    (failure,) = said["failures"]
    assert failure.startswith("OutOfResources: out of resource: shared memory")
    assert "\n" not in failure


def test_a_wrong_call_is_the_launchers_own_mistake(told: dict[str, Any]) -> None:
    assert told["misused"]["raised"] == "KeyError"
    assert told["misused"]["failures"] == []


def test_observers_see_the_tensors_and_nothing_of_the_inside(told: dict[str, Any]) -> None:
    assert told["tuple"]["shown"] == [[["x_ptr", "y_ptr"], None, None, []]]
