"""Claims about errors on a GPU: which are a kernel's fault, and which say nothing of a kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from gatecert.gates.failing import is_no_verdict
from gatecert.lanes.cuda.failures import in_a_line, is_failure_to_run, is_fault, pending_fault

FAULT = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be ..."


@pytest.mark.parametrize(
    ("said", "fault", "no_verdict"),
    [
        (FAULT, True, False),
        ("Triton Error [CUDA]: an illegal memory access was encountered", True, False),
        ("CUDA error: misaligned address", True, False),
        ("CUDA error: device-side assert triggered", True, False),
        ("CUDA error: operation not supported on global/shared address space", True, False),
        ("CUDA error: unspecified launch failure", True, False),
        ("CUDA error: invalid configuration argument", False, False),
        ("Triton Error [CUDA]: invalid argument", False, False),
        ("CUDA error: out of memory", False, True),
        ("CUDA error: no kernel image is available for execution on the device", False, True),
        ("CUDA error: uncorrectable ECC error encountered", False, True),
        ("PassManager::run failed", False, True),
        ("misaligned address of the mailbox", False, False),
        ("shapes do not match", False, False),
    ],
)
def test_an_error_of_the_device_is_told_by_its_words(
    said: str, fault: bool, no_verdict: bool
) -> None:
    error = RuntimeError(said)
    assert is_fault(error) is fault
    assert is_no_verdict(error) is no_verdict


def test_an_assertion_that_quotes_a_fault_is_none() -> None:
    assert not is_fault(AssertionError(FAULT))
    assert not is_failure_to_run(AssertionError("CUDA error: out of memory"))


def test_a_fault_is_one_however_often_it_was_raised_anew() -> None:
    try:
        try:
            raise RuntimeError(FAULT)
        except RuntimeError:
            raise AssertionError("the kernel raised")  # noqa: B904  (as a test would)
    except AssertionError as error:
        assert is_fault(error)
    assert not is_fault(None)


def test_what_does_not_compile_or_fit_is_known_by_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = ModuleType("triton.runtime.errors")
    errors.OutOfResources = type("OutOfResources", (Exception,), {})  # type: ignore[attr-defined]
    assert not is_failure_to_run(errors.OutOfResources("threads"))
    monkeypatch.setitem(sys.modules, "triton.runtime.errors", errors)
    assert is_failure_to_run(errors.OutOfResources("threads"))


def test_a_compilers_error_is_told_by_its_kind_and_its_end() -> None:
    class CompilationError(Exception):
        pass

    said = "at 17:16:\n    x = tl.load(p)\n        ^\nno such function"
    assert in_a_line(CompilationError(said)) == "CompilationError: at 17:16: no such function"
    assert in_a_line(ValueError("wrong")) == "ValueError: wrong"


def waits(raises: str) -> Callable[[], None]:
    """What stands for `torch.cuda.synchronize`."""

    def synchronize() -> None:
        if raises:
            raise RuntimeError(raises)

    return synchronize


@pytest.mark.parametrize(
    ("used", "raises", "said"),
    [
        (True, FAULT, f"RuntimeError: {FAULT}"),
        (True, "", ""),
        (False, FAULT, ""),
    ],
)
def test_a_fault_that_nobody_waited_for_is_found_where_the_gpu_is_used(
    monkeypatch: pytest.MonkeyPatch, used: bool, raises: str, said: str
) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: used, synchronize=waits(raises))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert pending_fault() == said
