"""Switch the interpreter on, corrected, in a process that has not used Triton yet."""

from __future__ import annotations

import os
import sys

import torch

from gatecert.errors import EnvironmentFailure

_OLDEST = (3, 6)
_NEWEST = (3, 9)


def activate() -> None:
    """Make this process interpret kernels; call it before any module with kernels is imported.

    Patches Triton for good: this process can compile nothing afterwards. Idempotent.

    Raises:
        EnvironmentFailure: Triton is missing or of an unsupported version, or kernels were
            decorated for the compiler already.
    """
    if "triton" in sys.modules:
        _check_interpreting()
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        import triton
    except ImportError as error:
        raise EnvironmentFailure(
            "triton is not installed: install triton 3.6 to 3.9, for instance "
            "`pip install triton==3.9.0`"
        ) from error
    check_version(triton.__version__)
    torch.set_num_threads(1)
    from gatecert.lanes.interpreter.host import patch_host
    from gatecert.lanes.interpreter.language import is_patched, patch_interpreter
    from gatecert.lanes.interpreter.libdevice import patch_libdevice

    if not is_patched():
        patch_interpreter()
        patch_libdevice()
        patch_host()


def check_version(version: str) -> None:
    """Refuse a Triton that this lane was not made for.

    Raises:
        EnvironmentFailure: the version is not supported.
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    if not _OLDEST <= (major, minor) <= _NEWEST:
        raise EnvironmentFailure(
            f"triton {version} is not supported; gatecert supports 3.6 to 3.9: install one of "
            "them, for instance `pip install triton==3.9.0`"
        )


def _check_interpreting() -> None:
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction

    if not isinstance(tl.standard.sum, InterpretedFunction):
        raise EnvironmentFailure(
            "triton was imported before the interpreter was switched on: set TRITON_INTERPRET=1, "
            "or import no kernels before gatecert activates the lane"
        )
