"""What goes wrong on a GPU, told by the errors of torch and Triton. Imports neither.

A *fault* is an error of a kernel that ran: it leaves the process unable to use the GPU, whatever
runs in it afterwards. A *failure to run* comes before: the code does not compile, asks for more
than the GPU has, or the machine is ill.
"""

from __future__ import annotations

import sys

from gatecert.errors import described, links

_FAULTS = (
    "illegal memory access",
    "misaligned address",
    "device-side assert",
    "illegal instruction",
    "on global/shared address space",
    "invalid program counter",
    "hardware stack error",
    "unspecified launch failure",
    "launch timed out",
)
"""Sticky errors, as `cudaGetErrorString` words them (CUDA Runtime API, cudaError)."""
_NOT_COMPILED = ("passmanager::run failed", "failed to translate module")
"""What Triton's compiler raises as a plain RuntimeError."""
_ILL = (
    "no kernel image is available",
    "unsupported toolchain",
    "no cuda-capable device",
    "devices are busy or unavailable",
    "driver version is insufficient",
    "uncorrectable ecc error",
    "cuda unknown error",
    "initialization error",
    "system not yet initialized",
    "out of memory",
)
"""What the driver says of the machine, not of the kernel."""
_BY_TYPE = {
    "triton.compiler.errors": ("CompilationError",),
    "triton.runtime.errors": ("OutOfResources", "PTXASError"),
}


def is_fault(error: BaseException | None) -> bool:
    """Did a kernel that ran end by an error, which this exception or one that led to it tells?"""
    if error is None:
        return False
    return any(_is_of_driver(link) and _says(link, _FAULTS) for link in links(error))


def is_failure_to_run(error: BaseException) -> bool:
    """Did the code not compile, did it ask for more than the GPU has, or is the machine ill?"""
    if isinstance(error, _types()):
        return True
    if _says(error, _NOT_COMPILED):
        return isinstance(error, RuntimeError)
    return _is_of_driver(error) and _says(error, _ILL)


def in_a_line(error: BaseException) -> str:
    """`CompilationError: ... no such function`: a compiler quotes the code, and says what is wrong
    with it at the end."""
    lines = [line.strip() for line in described(error).splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}"


def pending_fault() -> str:
    """The fault of a kernel that nobody has waited for yet, in words; "" where there is none.

    Waits for all that this process has started on its current GPU, if it uses one.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        return described(error)
    return ""


def _is_of_driver(error: BaseException) -> bool:
    """`CUDA error: ...` of torch, `Triton Error [CUDA]: ...` of Triton's launcher."""
    return isinstance(error, RuntimeError) and _says(error, ("cuda",))


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    said = str(error).lower()
    return any(word in said for word in words)


def _types() -> tuple[type[BaseException], ...]:
    """Triton's own classes, as far as this process has imported them."""
    found = (
        getattr(sys.modules.get(module), name, None)
        for module, names in _BY_TYPE.items()
        for name in names
    )
    return tuple(kind for kind in found if isinstance(kind, type))
