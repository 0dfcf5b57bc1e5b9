"""Record the launches of compiled kernels, and show their tensors, as the interpreter lane does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import torch
from triton.compiler.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from gatecert.lanes.cuda.failures import in_a_line, is_failure_to_run
from gatecert.lanes.interpreter.guards import guard_in_force
from gatecert.lanes.interpreter.launches import observers, place_of_launch, recorders
from gatecert.lanes.interpreter.signature import name_of, resolve_grid, signature_of
from gatecert.lanes.records import Launch, LaunchTrace

_MARK = "_gatecert_tells"
_OPTIONS = ("num_warps", "num_stages")
_UNKNOWN = LaunchTrace(
    read=frozenset(),
    wrote=frozenset(),
    masked=None,
    longest_loop=None,
    asks_which_program=False,
)
"""What compiled code reads, masks off and loops over is not seen."""


class _Tuning(threading.local):
    """Whether this thread is in an autotuner's benchmark."""

    under_way = False


def activate() -> None:
    """Tell the recorders and observers in force of every launch of this process, and the guard in
    force of every launch that could not be made.

    A kernel that was compiled by `warmup` and is launched as it came from there is told of too.
    What an autotuner launches to choose by is not, nor that some of its configurations cannot run.
    Changes Triton for good, but nothing that it does. Idempotent.
    """
    if hasattr(JITFunction.run, _MARK):
        return
    tuning = _Tuning()
    JITFunction.run = _telling(JITFunction.run, tuning)
    Autotuner._bench = _silent(Autotuner._bench, tuning)
    CompiledKernel.__getitem__ = _telling_of_compiled(CompiledKernel.__getitem__)


def _telling(run: Callable[..., Any], tuning: _Tuning) -> Callable[..., Any]:
    def told(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        if tuning.under_way:
            return run(kernel, *args, grid=grid, warmup=warmup, **options)
        made: list[tuple[Launch, Mapping[str, Any]]] = []

        def noted_grid(bound: Mapping[str, Any]) -> Any:
            """Called when all is compiled; the launch comes next."""
            dims = grid(bound) if callable(grid) else grid
            made.append((_recorded(kernel.fn, bound, options, dims), bound))
            return dims

        asked = grid if warmup else noted_grid
        with _failures_noted():
            answer = run(kernel, *args, grid=asked, warmup=warmup, **options)
        for launch, bound in made:
            _show(launch, bound)
        return answer

    setattr(told, _MARK, True)
    return told


def _telling_of_compiled(launcher_for: Callable[..., Any]) -> Callable[..., Any]:
    def told(compiled: Any, grid: Any) -> Any:
        with _failures_noted():
            launch_it = launcher_for(compiled, grid)
        kernel = getattr(compiled.src, "fn", None)
        if kernel is None:  # made of text that is no Python
            return launch_it

        def launched(*args: Any, **options: Any) -> Any:
            bound = dict(zip(kernel.arg_names, args, strict=False))
            made_with = {name: getattr(compiled.metadata, name, None) for name in _OPTIONS}
            launch = _recorded(kernel.fn, bound, made_with, grid)
            answer = launch_it(*args, **options)
            _show(launch, bound)
            return answer

        return launched

    return told


def _silent(bench: Callable[..., Any], tuning: _Tuning) -> Callable[..., Any]:
    def benchmark(tuner: Any, *args: Any, **options: Any) -> Any:
        before, tuning.under_way = tuning.under_way, True
        try:
            with _failures_noted():
                return bench(tuner, *args, **options)
        finally:
            tuning.under_way = before

    return benchmark


@contextlib.contextmanager
def _failures_noted() -> Iterator[None]:
    """Log the errors that leave this block and say nothing of the kernel: a launcher may catch
    them and fall back."""
    try:
        yield
    except Exception as error:
        if is_failure_to_run(error):
            guard_in_force().log.add_failure(in_a_line(error))
        raise


def _show(launch: Launch, bound: Mapping[str, Any]) -> None:
    watching = observers()
    if watching:
        tensors = {name: value for name, value in bound.items() if isinstance(value, torch.Tensor)}
        for observer in watching:
            observer.after(launch, tensors, _UNKNOWN)


def _recorded(
    function: Any, bound: Mapping[str, Any], options: Mapping[str, Any], grid: Any
) -> Launch:
    """The launch that is about to be made, as it is told to the recorders."""
    launch = _described(function, bound, options, grid)
    for recorder in recorders():
        recorder.launches.append(launch)
    return launch


def _described(
    function: Any, bound: Mapping[str, Any], options: Mapping[str, Any], grid: Any
) -> Launch:
    """The launch as a record; of one that cannot be described, the kernel's name alone."""
    try:
        dims = resolve_grid(grid, bound, options)
        launch = signature_of(function).describe(bound, options, dims)
    except Exception:
        return Launch(name_of(function), (0, 0, 0), (), ())
    return msgspec.structs.replace(launch, launcher=place_of_launch())
