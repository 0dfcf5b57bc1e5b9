"""A warm process that compiles texts: it imports Triton once and forks a child per text.

Run as `python -m gatecert.mutants.compile_server IMPORT_PATH...`, requests on stdin. It has one
thread and compiles nothing itself, so that its forks are safe; it ends with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import importlib
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime import cache
from triton.runtime.jit import JITFunction

from gatecert.mutants.compile_protocol import (
    FAILED,
    CompileReply,
    CompileRequest,
    Stop,
    read_frame,
    write_frame,
)
from gatecert.mutants.overlay import install_overlay, overlay_proof
from gatecert.mutants.records import Signature

_TARGET = GPUTarget("cuda", 90, 32)
_PR_SET_PDEATHSIG = 1
_LOAD_OPERANDS = re.compile(r"\btt\.load ([^:{\n]*)")
_PRELOAD = ("torch", "numpy")
"""What nearly every kernel's module imports; dear to import once per child."""


class _Broken(Exception):
    """Nothing can be concluded about the text."""


def main() -> None:
    """Answer requests until stdin ends."""
    die_with_parent()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for name in _PRELOAD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _warm_up()
    sys.path[:0] = sys.argv[1:]
    gc.freeze()
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        request = msgspec.msgpack.decode(frame, type=CompileRequest)
        for name in request.preload:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        write_frame(replies, msgspec.msgpack.encode(_in_child(request)))


def _warm_up() -> None:
    """Do once what Triton would do in every child: hash itself, ask ptxas its version, import."""
    importlib.import_module("triton.compiler.code_generator")
    backend = make_backend(_TARGET)
    backend.hash()
    backend.get_codegen_implementation(backend.parse_options({}))
    backend.get_module_map()
    cache.triton_key()


def die_with_parent() -> None:
    """Ask the operating system to kill this process when its parent ends (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


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
    status = os.waitpid(pid, 0)[1]
    if not broken and os.WIFSIGNALED(status):
        broken = f"the compiler died of signal {os.WTERMSIG(status)}"
    elif not broken and status:
        broken = "the compiler's process ended early"
    return CompileReply(tuple(hashes), error, broken, time.monotonic() - started)


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
        install_overlay(request.files)
        kernels = _import_kernels(request)
    except _Broken as error:
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
            digest, message = _compile(kernels[signature.kernel], signature), ""
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


def load_kernel(name: str) -> JITFunction[Any]:
    """The compiled kernel `module:qualname`, freed of autotuners, heuristics and the like."""
    module_name, _, qualname = name.partition(":")
    module = importlib.import_module(module_name)
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    for candidate in (found, *vars(module).values()):
        kernel = _unwrapped(candidate)
        if kernel is not None and kernel.fn.__qualname__ == qualname:
            return kernel
    raise _Broken(f"{name} cannot be reached by importing its module")


def _unwrapped(value: Any) -> JITFunction[Any] | None:
    seen = 0
    while not isinstance(value, JITFunction):
        inner = getattr(value, "fn", None)
        if inner is None or seen > 16:
            return None
        value, seen = inner, seen + 1
    return value


def _compile(kernel: JITFunction[Any], signature: Signature) -> str:
    """Hash of the machine code, and of what a launch takes from the compiler beside it."""
    types = dict(signature.types)
    known = dict(signature.constexprs)
    constexprs = {}
    for param in kernel.params:
        if param.name in types:
            continue
        constexprs[param.name] = _constant(known.get(param.name, param.default))
    source = ASTSource(
        fn=kernel,
        signature={name: types.get(name, "constexpr") for name in kernel.arg_names},
        constexprs=constexprs,
    )
    options = {"num_warps": signature.num_warps, "num_stages": signature.num_stages}
    known_as = _known_codes(source, options)
    if known_as is not None and known_as.exists():
        return known_as.read_text(encoding="ascii")
    compiled = triton.compile(source, target=_TARGET, options=options)
    digest = hashlib.sha256(compiled.asm["cubin"])
    digest.update(repr((compiled.metadata.shared, compiled.metadata.num_warps)).encode())
    digest.update(repr(_loads_with_undefined_lanes(compiled.asm["ttir"])).encode())
    if known_as is not None:
        partial = known_as.with_suffix(f".{os.getpid()}")
        partial.write_text(digest.hexdigest(), encoding="ascii")
        partial.replace(known_as)
    return digest.hexdigest()


def _known_codes(source: ASTSource, options: dict[str, int]) -> Path | None:
    """Where the code of this front-end IR is kept: the rest of the compiler depends on it alone.

    A mutant in a branch that constants switch off has the original's IR, at a hundredth of the
    price of its machine code. None where the IR cannot be had; `triton.compile` then says why.
    """
    backend = make_backend(_TARGET)
    try:
        parsed = backend.parse_options(dict(options))
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        codegen = backend.get_codegen_implementation(parsed)
        module = source.make_ir(_TARGET, parsed, codegen, backend.get_module_map(), context)
        text = module.str_nodebug() if hasattr(module, "str_nodebug") else str(module)
    except Exception:
        return None
    key = hashlib.sha256(repr((text, sorted(options.items()))).encode()).hexdigest()
    folder = Path(os.environ["TRITON_CACHE_DIR"]) / "codes"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / key


def _loads_with_undefined_lanes(ttir: str) -> list[int]:
    """Which loads are masked without `other`: what this target puts there proves nothing.

    `tt.load pointer, mask` leaves masked-off lanes undefined; this backend happens to fill
    them with zeros, so that the machine code alone would call a dropped `other=0` equivalent.
    """
    loads = enumerate(_LOAD_OPERANDS.findall(ttir))
    return [position for position, operands in loads if operands.count(",") == 1]


def _constant(value: Any) -> Any:
    """A constexpr's value from the form in which records hold it."""
    if isinstance(value, str) and value.startswith("dtype:"):
        return tl.dtype(value.removeprefix("dtype:"))
    if isinstance(value, str) and value.startswith("fn:"):
        return load_kernel(value.removeprefix("fn:"))
    if isinstance(value, str) and value.startswith("float:"):
        return float(value.removeprefix("float:"))
    return value


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
