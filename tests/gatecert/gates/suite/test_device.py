"""Whoever asks for a GPU is told how to do without, and nobody else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.errors import ExitCode
from gatecert.gates.suite.device import fails_without_gpu, waits_for_gpu
from gatecert.gates.suite.log import log_end
from tests.gatecert.gates.asking import Judge, Refused
from tests.gatecert.gates.suite.test_pytest_baseline import suite


@pytest.mark.parametrize(
    "message",
    [
        "AssertionError: Torch not compiled with CUDA enabled",
        "RuntimeError: Found no NVIDIA driver on your system. Please check",
        "RuntimeError: No CUDA GPUs are available",
    ],
)
def test_torch_without_a_gpu_is_known_by_its_message(message: str) -> None:
    assert fails_without_gpu(message)
    assert not fails_without_gpu("AssertionError: Tensor-likes are not close!")


def test_a_skip_for_want_of_a_gpu_is_known_by_its_reason() -> None:
    assert waits_for_gpu("needs a GPU")
    assert waits_for_gpu("CUDA not available")
    assert not waits_for_gpu("slow")


def test_tests_bound_to_cuda_are_told_to_take_the_device_from_the_environment(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
        def test_on_cuda():
            raise AssertionError("Torch not compiled with CUDA enabled")
        """
    with pytest.raises(Refused, match="DEVICE=cpu gatecert certify") as said:
        judge("tests", suite(tmp_path, text))
    assert said.value.exit_code is ExitCode.ENVIRONMENT_FAILED
    assert "deselect" not in str(said.value)


def test_the_end_of_a_log_is_short_and_the_users_own() -> None:
    log = """
test_a.py:3: in test_it
    softmax(x)
../../gatecert/gatecert/lanes/interpreter/launches.py:7: in launch
    return run(x)
    ^^^^^^
kernels.py:9: in softmax
    boom
E   ValueError: no
=========================== short test summary info ============================
FAILED test_a.py::test_it - ValueError: no
"""
    assert log_end(log) == [
        *("test_a.py:3: in test_it", "    softmax(x)"),
        *("kernels.py:9: in softmax", "    boom"),
        "E   ValueError: no",
    ]
    assert len(log_end("line\n" * 99)) == 10
