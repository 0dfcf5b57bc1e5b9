"""A script that launches kernels as if they were compiled, and prints what is told of them.

What Triton itself does at a launch is replaced, since there is no GPU to ask.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import torch
import triton
import triton.language as tl
from triton.compiler.compiler import CompiledKernel
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from gatecert.lanes import interpreter
from gatecert.lanes.cuda.launches import activate
from gatecert.lanes.records import GuardPolicy, Launch, LaunchTrace
from gatecert.mutants.adversary_outputs import no_launches

TOO_LARGE = 4096
X = torch.zeros(8, 16)


def stand_in(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
    """As `JITFunction.run` does: bind, compile, ask the grid, launch."""
    named = {name: value for name, value in options.items() if name in kernel.arg_names}
    bound = {**dict(zip(kernel.arg_names, args, strict=False)), **named}
    if not warmup:
        dims = grid(bound) if callable(grid) else grid
        assert all(type(dim) is int for dim in dims)
    if bound["BLOCK"] >= TOO_LARGE:  # as it is loaded
        raise OutOfResources(bound["BLOCK"], 1024, "shared memory")


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=cols < n), mask=cols < n)


def benchmark(call: Callable[[], None], quantiles: Any = None) -> list[float]:
    """Three timed runs."""
    for _ in range(3):
        call()
    return [1.0, 1.0, 1.0]


tuned = triton.autotune(
    [triton.Config({"BLOCK": block}) for block in (TOO_LARGE, 64, 128)],
    key=["n"],
    do_bench=benchmark,
)(copy)


class Observer:
    """Remembers what it is shown."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def before(self, launch: Launch, tensors: Any) -> None:
        """Values of compiled launches are not looked at."""
        self.shown.append("before")

    def after(self, launch: Launch, tensors: Any, trace: LaunchTrace) -> None:
        """A launch was made."""
        self.shown.append([list(tensors), trace.masked, trace.longest_loop, sorted(trace.read)])


def told(launch: Callable[[], Any]) -> dict[str, Any]:
    """What a launch tells: launches, failures, what observers see, and what it raises."""
    observer, raised = Observer(), ""
    with (
        interpreter.recording() as launches,
        interpreter.guarded(GuardPolicy.LENIENT) as log,
        interpreter.observed(observer),
    ):
        try:
            launch()
        except Exception as error:
            raised = type(error).__name__
    return {
        "launches": msgspec.to_builtins(launches),
        "failures": log.failures(),
        "shown": observer.shown,
        "raised": raised,
    }


def compiled_by_warmup() -> Any:
    """What `warmup` gives, to be launched as it is."""
    kernel = CompiledKernel.__new__(CompiledKernel)
    kernel.module = kernel._module_pid = None
    kernel.src = SimpleNamespace(fn=copy)
    kernel.metadata = SimpleNamespace(num_warps=2, num_stages=5)
    return kernel


def launch_compiled(compiled: Any, grid: tuple[int, ...]) -> Callable[..., None]:
    """As `CompiledKernel.__getitem__` does."""
    return lambda *args, stream=None: None


def silenced() -> None:
    """What an adversary lets be launched."""
    with no_launches():
        compiled_by_warmup()[(7, 1, 1)](X, X, 16, 32)
        copy[(1,)](X, X, 16, BLOCK=32)
        tuned[(5,)](X, X, 16)


if __name__ == "__main__":
    JITFunction.run = stand_in
    CompiledKernel.__getitem__ = launch_compiled
    activate()
    activate()
    cases: dict[str, Callable[[], Any]] = {
        "tuple": lambda: copy[(2, 3)](X, X, 16, BLOCK=32, num_warps=8),
        "callable": lambda: copy[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](
            X, X, 100, BLOCK=32
        ),
        "warmup": lambda: copy.warmup(X, X, 16, BLOCK=32, grid=(1,)),
        "autotuned": lambda: tuned[(5,)](X, X, 16),
        "too large": lambda: copy[(1,)](X, X, 16, BLOCK=TOO_LARGE),
        "compiled": lambda: compiled_by_warmup()[(7, 1, 1)](X, X, 16, 32),
        "silenced": silenced,
        "misused": lambda: copy[(1,)](X, X, 16),
    }
    print(json.dumps({name: told(launch) for name, launch in cases.items()}))
