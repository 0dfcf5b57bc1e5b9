"""Suites that ask for a GPU: on the interpreter lane there is none, on the cuda lane there must be
one."""

from __future__ import annotations

import re

_NO_GPU = re.compile(
    r"not compiled with CUDA|Found no NVIDIA driver|No CUDA GPUs are available"
    r"|CUDA driver version is insufficient|torch\.cuda\.is_available\(\) is False"
    r"|(?:libcuda|libnvidia\S*)\.so|Cannot access accelerator device when none is available"
)
_WAITS_FOR_GPU = re.compile(r"\b(?:cuda|gpus?|nvidia|hip|rocm)\b", re.IGNORECASE)
ADVICE = (
    "mutants run on Triton's interpreter, where tests need tensors on the CPU: take the device "
    'from an environment variable, as in DEVICE = os.environ.get("DEVICE", "cuda"), or from a '
    "fixture, and run `DEVICE=cpu gatecert certify ...`; or, where there is a GPU, set "
    'lane = "cuda" in the gate\'s table'
)
WITHOUT_GPU = (
    'lane = "cuda" in its table needs one, with a CUDA build of torch; where there is none, '
    'lane = "interpreter" runs kernels on the CPU'
)


def fails_without_gpu(message: str) -> bool:
    """Is that torch's answer to who asks for a GPU where there is none?"""
    return _NO_GPU.search(message) is not None


def waits_for_gpu(reason: str) -> bool:
    """Is a test skipped for want of a GPU, by what it says?"""
    return _WAITS_FOR_GPU.search(reason) is not None
