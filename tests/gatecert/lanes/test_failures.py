"""The interpreter's errors are told from the launcher's; unsupported set-ups are refused."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl

from gatecert.errors import EnvironmentFailure
from gatecert.lanes import interpreter
from gatecert.lanes.interpreter.activation import check_version
from gatecert.lanes.records import GuardPolicy
from tests.gatecert.lanes.inside import inside_lane


@triton.jit
def misshapen_kernel(out, A: tl.constexpr, B: tl.constexpr):
    tl.store(out + tl.arange(0, A), tl.arange(0, A) + tl.arange(0, B))


def launch_and_wrap() -> None:
    try:
        misshapen_kernel[(1,)](torch.zeros(8), 8, 4)
    except Exception:
        raise ValueError("the launcher gives up") from None


@inside_lane
def test_an_error_inside_a_kernel_is_the_interpreter_s() -> None:
    with pytest.raises(Exception) as caught:
        misshapen_kernel[(1,)](torch.zeros(8), 8, 4)
    assert interpreter.is_interpreter_failure(caught.value)


@inside_lane
def test_an_error_raised_over_an_interpreter_error_is_the_interpreter_s() -> None:
    with pytest.raises(ValueError, match="gives up") as caught:
        launch_and_wrap()
    assert interpreter.is_interpreter_failure(caught.value)


@inside_lane
def test_a_launcher_s_own_error_is_not_the_interpreter_s() -> None:
    assert not interpreter.is_interpreter_failure(ValueError("shapes differ"))


@inside_lane
def test_a_kernel_can_run_after_another_one_failed() -> None:
    with pytest.raises(Exception):  # noqa: B017
        misshapen_kernel[(1,)](torch.zeros(8), 8, 4)
    out = torch.zeros(8)
    misshapen_kernel[(1,)](out, 8, 8)
    assert out.tolist() == list(range(0, 16, 2))


@inside_lane
def test_a_failed_launch_is_logged_though_the_launcher_catches_it() -> None:
    with interpreter.guarded(GuardPolicy.LENIENT) as log:
        misshapen_kernel[(1,)](torch.zeros(8), 8, 8)
        assert log.failures() == ()
        with contextlib.suppress(Exception):
            misshapen_kernel[(1,)](torch.zeros(8), 8, 4)
        with contextlib.suppress(Exception):
            misshapen_kernel[(1,)](torch.zeros(8, device="meta"), 8, 8)
    broken, refused = log.failures()
    assert broken.startswith("InterpreterError: ")
    assert refused.startswith("LaneRefusal: ")


@inside_lane
def test_a_launch_with_wrong_arguments_is_not_logged_as_a_failure_of_the_lane() -> None:
    with interpreter.guarded(GuardPolicy.LENIENT) as log, pytest.raises(TypeError):
        misshapen_kernel[(1,)](torch.zeros(8), 8, 8, 8)
    assert log.failures() == ()


@inside_lane
def test_a_tensor_that_is_not_in_cpu_memory_is_refused() -> None:
    with pytest.raises(interpreter.LaneRefusal, match=r"'out'.*meta"):
        misshapen_kernel[(1,)](torch.zeros(8, device="meta"), 8, 8)


@inside_lane
def test_activating_twice_changes_nothing() -> None:
    from triton.runtime.interpreter import InterpretedFunction

    before = InterpretedFunction.run, tl.load, tl.sum
    interpreter.activate()
    assert before == (InterpretedFunction.run, tl.load, tl.sum)


@pytest.mark.parametrize("version", ["3.5.1", "3.10.0", "4.0.0"])
def test_another_version_of_triton_is_refused_with_what_to_install(version: str) -> None:
    with pytest.raises(EnvironmentFailure, match=rf"triton {version} is not supported.*3\.9\.0"):
        check_version(version)


@pytest.mark.parametrize("version", ["3.6.0", "3.7.0", "3.8.0", "3.9.0", "3.9.1+git123"])
def test_a_supported_version_of_triton_is_accepted(version: str) -> None:
    check_version(version)


def test_activating_after_triton_was_imported_for_the_compiler_is_refused() -> None:
    program = (
        "import triton\n"
        "from gatecert.errors import EnvironmentFailure\n"
        "from gatecert.lanes import interpreter\n"
        "try:\n    interpreter.activate()\n"
        "except EnvironmentFailure as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "TRITON_INTERPRET=1" in done.stdout


def test_importing_the_lane_imports_no_triton() -> None:
    program = "import sys, gatecert.lanes.interpreter; print('triton' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_self_test_finds_nothing_wrong() -> None:
    assert interpreter.self_test() == []
