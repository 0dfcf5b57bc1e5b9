"""A warm process that compiles texts: it imports Triton once and forks a child per text.

Run as `python -m gatecert.mutants.compile_server`, requests on stdin. It has one
thread and compiles nothing itself, so that its forks are safe; it ends with its parent.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from triton.runtime.jit import JITFunction

from gatecert.mutants.compile_code import KernelNotFound, code_hash, load_kernel, warm_up
from gatecert.mutants.compile_protocol import (
    FAILED,
    CompileReply,
    CompileRequest,
    Stop,
    read_frame,
    write_frame,
)
from gatecert.mutants.overlay import install_overlay, note_imports, overlay_proof
from gatecert.processes import die_with_parent

_PRELOAD = ("torch", "numpy")
"""What nearly every kernel's module imports; dear to import once per child."""


class _Broken(Exception):
    """Nothing can be concluded about the text."""


def main() -> None:
    """Answer requests until stdin ends."""
    die_with_parent()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    gc.disable()  # nothing of what is imported goes away
    for name in _PRELOAD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    warm_up()
    note_imports()
    gc.freeze()
    gc.enable()
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        request = msgspec.msgpack.decode(frame, type=CompileRequest)
        for name in request.preload:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        write_frame(replies, msgspec.msgpack.encode(_in_child(request)))


def _in_child(request: CompileRequest) -> CompileReply:
    """Fork a child and collect what it says; the time limit holds for each signature."""
    started = time.monotonic()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _be_the_child(request, write_end)
    os.close(write_end)
    hashes: list[str] = []
    error = broken = ""
    with os.fdopen(read_end, "rb", buffering=0) as answers:
        while True:
            ready, _, _ = select.select([answers], [], [], request.timeout_s)
            if not ready:
                broken = f"compiling did not end within {request.timeout_s:.0f} s"
                os.kill(pid, signal.SIGKILL)
                break
            frame = read_frame(answers)
            if frame is None:
                break
            part = msgspec.msgpack.decode(frame, type=CompileReply)
            hashes += part.hashes
            error, broken = error or part.error, part.broken
    _, status, used = os.wait4(pid, 0)
    if not broken and os.WIFSIGNALED(status):
        broken = f"the compiler died of signal {os.WTERMSIG(status)}"
    elif not broken and status:
        broken = "the compiler's process ended early"
    cpu_s = used.ru_utime + used.ru_stime
    return CompileReply(tuple(hashes), error, broken, time.monotonic() - started, cpu_s)


def _be_the_child(request: CompileRequest, write_end: int) -> None:
    code = 1
    try:
        die_with_parent()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        with os.fdopen(write_end, "wb") as answers:
            for part in _compile_all(request):
                write_frame(answers, msgspec.msgpack.encode(part))
        code = 0
    finally:
        os._exit(code)


def _compile_all(request: CompileRequest) -> Iterator[CompileReply]:
    try:
        sys.path[:0] = request.import_paths
        install_overlay(request.files)
        kernels = _import_kernels(request)
    except (_Broken, KernelNotFound) as error:
        yield CompileReply(broken=str(error))
        return
    except (OSError, MemoryError) as error:
        yield CompileReply(broken=_first_line(error))
        return
    except Exception as error:
        message = f"does not import: {_first_line(error)}"
        yield CompileReply((FAILED,) * len(request.signatures), message)
        return
    for position, signature in enumerate(request.signatures):
        try:
            digest = code_hash(kernels[signature.kernel], signature, request.depth)
            message = ""
        except (OSError, MemoryError) as error:
            yield CompileReply(broken=_first_line(error))
            return
        except Exception as error:
            digest, message = FAILED, _first_line(_innermost(error))
        yield CompileReply((digest,), message)
        if request.stop is Stop.FIRST_SUCCESS and digest != FAILED:
            return
        if request.stop is Stop.FIRST_DIFFERENCE and digest != request.expected[position]:
            return


def _import_kernels(request: CompileRequest) -> dict[str, JITFunction[Any]]:
    names = dict.fromkeys(signature.kernel for signature in request.signatures)
    kernels = {name: load_kernel(name) for name in names}
    missed = overlay_proof(request.files)
    if missed:
        raise _Broken(f"the overlaid text of {', '.join(missed)} was never imported")
    return kernels


def _innermost(error: BaseException) -> BaseException:
    """The compiler wraps an error once per call: the first one says what is wrong."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    message = getattr(error, "error_message", None) or str(error)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


if __name__ == "__main__":
    main()
