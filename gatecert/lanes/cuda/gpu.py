"""The GPU of this machine, and what a process needs to use it. Imports torch only where it must."""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
from collections.abc import Mapping

from gatecert.errors import EnvironmentFailure
from gatecert.lanes.cuda import driver

_LOOK_S = 60.0
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_KEPT = "GATECERT_CUDA_VISIBLE_DEVICES"
_ALL = "all"


def check_gpu(gate: str, advice: str) -> None:
    """Refuse to go on without a GPU that torch can use.

    Raises:
        EnvironmentFailure: there is none, or torch was built for none; it ends with the advice.
    """
    if not describe_gpu():
        raise EnvironmentFailure(f"gate {gate!r}: no GPU that CUDA can use here; {advice}")
    import torch

    if torch.version.cuda is None:
        raise EnvironmentFailure(
            f"gate {gate!r}: torch {torch.__version__} is built without CUDA; {advice}"
        )


@functools.cache
def describe_gpu() -> str:
    """`NVIDIA H200, sm_90, driver CUDA 12.8` of the first GPU that CUDA offers; "" without any.

    Another process asks: one that has used CUDA cannot be forked.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", driver.__file__],
            capture_output=True,
            text=True,
            timeout=_LOOK_S,
            check=False,
            env=with_gpus(os.environ),
            preexec_fn=lift_memory_limit,
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip()


def without_gpus(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that is to see no GPU, so that the interpreter lane does the
    same on every machine: tests that take one where they find one stay on the CPU."""
    kept = environment.get(_KEPT, environment.get(_VISIBLE, _ALL))
    return {**environment, _VISIBLE: "", _KEPT: kept}


def with_gpus(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with the GPUs that `without_gpus` took from it."""
    found = dict(environment)
    kept = found.pop(_KEPT, None)
    if kept == _ALL:
        del found[_VISIBLE]
    elif kept is not None:
        found[_VISIBLE] = kept
    return found


def lift_memory_limit() -> None:
    """CUDA reserves far more addresses than memory; a limit on them would only break it."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
