"""Claims about reading Compute Sanitizer's output. The samples are written after its manual."""

from __future__ import annotations

import pytest

from gatecert.gates.command.sanitizer_report import read_report

CLEAN = "========= COMPUTE-SANITIZER\nmy own line\n========= ERROR SUMMARY: 0 errors\n"
OUT_OF_BOUNDS = """\
========= COMPUTE-SANITIZER
shape (3, 100)
========= Invalid __global__ read of size 4 bytes
=========     at row_kernel+0x1a0
=========     by thread (101,0,0) in block (2,0,0)
=========     Address 0x7f00aa0004b4 is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x7f00aa000000 of size 1,200 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch in libcuda.so.1
=========
========= Invalid __global__ read of size 4 bytes
=========     at row_kernel+0x1a0
=========     by thread (102,0,0) in block (2,0,0)
=========
========= Invalid __shared__ write of size 8 bytes
=========     at row_kernel+0x2b0 in rows.cu:12
=========     by thread (0,0,0) in block (0,0,0)
========= ERROR SUMMARY: 3 errors
"""
RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at row_kernel+0x310
=========     and Read access at row_kernel+0x350 [4096 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
WARNED = """\
========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at row_kernel+0x310
=========     and Write access at row_kernel+0x310 [32 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
NO_HAZARD = """\
========= COMPUTE-SANITIZER
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""
UNINITIALISED = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at row_kernel(float *, float *, int)+0x90 in rows.cu:20
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f00aa000200
========= ERROR SUMMARY: 1 error
"""
FAILED_CALL = """\
========= COMPUTE-SANITIZER
========= Program hit cudaErrorNotSupported (error 801) due to "operation not supported" on CUDA \
API call to cudaStreamIsCapturing.
=========     Saved host backtrace up to driver entry point at error
========= ERROR SUMMARY: 1 error
"""
NOT_HERE = """\
========= COMPUTE-SANITIZER
========= Error: Device not supported. Please refer to the list of supported devices
=========
all tests passed
========= ERROR SUMMARY: 1 error
"""
NO_CALL = """\
========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
"""
NOT_ATTACHED = "========= Error: could not attach to process 12\n"
INTERNAL = """\
========= COMPUTE-SANITIZER
========= Internal Sanitizer Error: The Sanitizer encountered an error when instrumenting
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("output", "tool", "records"),
    [
        (CLEAN, "memcheck", ()),
        (CLEAN, "initcheck", ()),
        (NO_HAZARD, "racecheck", ()),
        (
            OUT_OF_BOUNDS,
            "memcheck",
            (
                "Invalid __global__ read of size 4 bytes at row_kernel+0x1a0",
                "Invalid __shared__ write of size 8 bytes at row_kernel+0x2b0 in rows.cu:12",
            ),
        ),
        (
            RACE,
            "racecheck",
            (
                "Race reported between Write access at row_kernel+0x310 and Read access at "
                "row_kernel+0x350",
            ),
        ),
        (WARNED, "racecheck", ()),
        (
            UNINITIALISED,
            "initcheck",
            (
                "Uninitialized __global__ memory read of size 4 bytes at "
                "row_kernel(float *, float *, int)+0x90 in rows.cu:20",
            ),
        ),
        (FAILED_CALL, "memcheck", ()),
        (NOT_HERE, "memcheck", ()),
        (OUT_OF_BOUNDS, "initcheck", ()),
        ("Invalid __global__ read of size 4 bytes\n" + CLEAN, "memcheck", ()),
    ],
)
def test_only_a_record_of_the_tools_own_kind_is_a_finding(
    output: str, tool: str, records: tuple[str, ...]
) -> None:
    assert read_report(output, tool).records == records


@pytest.mark.parametrize(
    ("output", "refusal"),
    [
        (NOT_HERE, "Error: Device not supported."),
        (NO_CALL, "Error: Target application terminated before"),
        (NOT_ATTACHED, "Error: could not attach"),
        (INTERNAL, "Internal Sanitizer Error"),
        (CLEAN, ""),
        (OUT_OF_BOUNDS, ""),
        (FAILED_CALL, ""),
        (RACE, ""),
    ],
)
def test_a_refusal_of_the_tool_is_told_from_a_failed_call_of_the_program(
    output: str, refusal: str
) -> None:
    found = read_report(output, "memcheck").refusal
    assert found.startswith(refusal)
    assert bool(found) is bool(refusal)


@pytest.mark.parametrize(
    ("output", "tool", "finished", "errors"),
    [
        (CLEAN, "memcheck", True, 0),
        (OUT_OF_BOUNDS, "memcheck", True, 3),
        (RACE, "racecheck", True, 1),
        (WARNED, "racecheck", True, 0),
        (CLEAN, "racecheck", False, 0),
        (NO_CALL, "memcheck", False, 0),
    ],
)
def test_the_tools_summary_says_that_it_came_to_its_end(
    output: str, tool: str, finished: bool, errors: int
) -> None:
    report = read_report(output, tool)
    assert (report.finished, report.errors) == (finished, errors)
