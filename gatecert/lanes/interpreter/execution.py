"""Run launches: what `InterpretedFunction` does when it is launched or called."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import torch
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.errors import InterpreterError

from gatecert.errors import GatecertError, described
from gatecert.lanes.interpreter.failures import StoppedLaunch, is_interpreter_failure
from gatecert.lanes.interpreter.guards import Guard, guard_in_force
from gatecert.lanes.interpreter.launches import (
    observers,
    place_of_launch,
    recorders,
    sees_arguments,
)
from gatecert.lanes.interpreter.memory import Memory
from gatecert.lanes.interpreter.order import INTERLEAVED, in_order, take_turns
from gatecert.lanes.interpreter.rewriting import rewrite
from gatecert.lanes.interpreter.signature import Grid, Signature, resolve_grid, signature_of
from gatecert.lanes.interpreter.stopwatch import kernel_runs
from gatecert.lanes.records import LaunchTrace

rewritten = functools.cache(rewrite)
_ONE_AT_A_TIME = threading.RLock()
"""Triton's interpreter keeps the launch that is running in one place for all threads."""


def launch(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
    """Run a kernel over a grid; tensors are read and written where they are, without copies.
    Launches of several threads run one after the other.

    A failure of the lane is also logged, since a launcher may catch it and fall back.
    """
    if warmup:
        return
    guard = guard_in_force()
    try:
        with _ONE_AT_A_TIME:
            _launch(kernel, args, options, grid, guard)
    except Exception as error:
        if is_interpreter_failure(error):
            guard.log.add_failure(described(error))
        raise


def call(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a jitted function from inside a kernel."""
    return rewritten(kernel.fn)(*args, **kwargs)


def _launch(
    kernel: Any, args: tuple[Any, ...], options: dict[str, Any], grid: Any, guard: Guard
) -> None:
    signature = signature_of(kernel.fn)
    bound = signature.bind(args, options)
    for hook in kernel.pre_run_hooks:
        hook(*args, **options)
    dims = resolve_grid(grid, bound, options)
    in_force, watching = recorders(), observers()
    if in_force or watching:
        described = msgspec.structs.replace(
            signature.describe(bound, options, dims), launcher=place_of_launch()
        )
        for recorder in in_force:
            recorder.launches.append(described)
        if any(recorder.dry for recorder in in_force):
            return
    if (sees := sees_arguments()) is not None:
        sees.launched(signature.kernel, args, options, dims)
    if not watching:
        _run_grid(kernel, signature, bound, dims, guard)
        return
    tensors = {name: value for name, value in bound.items() if isinstance(value, torch.Tensor)}
    for observer in watching:
        observer.before(described, tensors)
    memory = _run_grid(kernel, signature, bound, dims, guard)
    trace = _trace_of(memory, kernel.fn)
    for observer in watching:
        observer.after(described, tensors, trace)


def _trace_of(memory: Memory, function: Any) -> LaunchTrace:
    accesses = memory.accesses
    return LaunchTrace(
        read=memory.names_of(accesses.read),
        wrote=memory.names_of(accesses.written),
        masked=accesses.masked,
        longest_loop=accesses.longest_loop,
        asks_which_program="program_id" in function.__code__.co_names,
    )


def _run_grid(
    kernel: Any, signature: Signature, bound: Mapping[str, Any], dims: Grid, guard: Guard
) -> Memory:
    builder = triton_interpreter.interpreter_builder
    memory = builder.memory = Memory(signature.kernel, guard)
    builder.set_grid_dim(*dims)
    try:
        with np.errstate(all="ignore"), kernel_runs():
            arguments = signature.tensors(bound, builder.memory)
            _run_programs(rewritten(kernel.fn), arguments, builder, dims, guard)
    except (GatecertError, StoppedLaunch):
        raise
    except Exception as error:
        raise InterpreterError(repr(error)) from error
    finally:
        builder.memory = None
    return memory


def _run_programs(
    function: Callable[..., Any], arguments: dict[str, Any], builder: Any, dims: Grid, guard: Guard
) -> None:
    programs = in_order(guard.schedule, dims)

    def resume(program: Grid) -> None:
        builder.grid_idx = program

    def run(program: Grid) -> None:
        resume(program)
        function(**arguments)

    missed = INTERLEAVED.get(guard.schedule.order)
    if missed is not None:
        take_turns(programs, run, resume, builder.memory.set_turns, missed)
    else:
        for program in programs:
            run(program)
    if len(programs) > 1 and builder.memory.accesses.are_shared:
        guard.log.note_sharing()
