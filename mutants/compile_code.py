"""The code of one kernel for one signature, as a hash, at one of two depths.

The front end's IR decides all that follows, so a hash is kept under it: a mutant in a branch
that constants switch off costs a hundredth of its machine code.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime import cache
from triton.runtime.jit import JITFunction

from gatecert.mutants.records import CodeDepth, Signature

_TARGET = GPUTarget("cuda", 90, 32)
_LOAD_OPERANDS = re.compile(r"\btt\.load ([^:{\n]*)")
CODES_FOLDER = "GATECERT_CODES"
"""Environment variable that names the folder of known codes; without it none are kept."""


class KernelNotFound(Exception):
    """A kernel cannot be reached by importing its module: nothing can be concluded."""


def warm_up() -> None:
    """Do once what Triton would do in every child: hash itself, ask ptxas its version, import."""
    importlib.import_module("triton.compiler.code_generator")
    backend = make_backend(_TARGET)
    backend.hash()
    backend.get_codegen_implementation(backend.parse_options({}))
    backend.get_module_map()
    cache.triton_key()


def load_kernel(name: str) -> JITFunction[Any]:
    """The compiled kernel `module:qualname`, freed of autotuners, heuristics and the like.

    Raises:
        KernelNotFound: the module has no such kernel.
    """
    module_name, _, qualname = name.partition(":")
    module = importlib.import_module(module_name)
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    for candidate in (found, *vars(module).values()):
        kernel = _unwrapped(candidate)
        if kernel is not None and kernel.fn.__qualname__ == qualname:
            return kernel
    raise KernelNotFound(f"{name} cannot be reached by importing its module")


def code_hash(kernel: JITFunction[Any], signature: Signature, depth: CodeDepth) -> str:
    """Hash of the kernel's code for a signature; what the compiler raises passes through."""
    source = _source(kernel, signature)
    options = {"num_warps": signature.num_warps, "num_stages": signature.num_stages}
    front = _front_end(source, options)
    kept = _kept(front, options, depth) if front is not None else None
    if kept is not None and kept.exists():
        return kept.read_text(encoding="ascii")
    if depth is CodeDepth.OPTIMISED_IR and front is not None:
        digest = _hash(front.optimised())
    else:
        digest = _machine_code(source, options)
    if kept is not None:
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(digest, encoding="ascii")
        partial.replace(kept)
    return digest


def _machine_code(source: ASTSource, options: dict[str, int]) -> str:
    """Hash of the machine code, and of what a launch takes from the compiler beside it."""
    compiled = triton.compile(source, target=_TARGET, options=options)
    shared, warps = compiled.metadata.shared, compiled.metadata.num_warps
    undefined = _loads_with_undefined_lanes(compiled.asm["ttir"])
    return _hash(compiled.asm["cubin"], repr((shared, warps, undefined)))


@dataclass(frozen=True, slots=True)
class _FrontEnd:
    """What the front end made of a kernel: its text, and how to optimise it."""

    text: str
    optimised: Callable[[], str]


def _front_end(source: ASTSource, options: dict[str, int]) -> _FrontEnd | None:
    """The front end's IR; None where it cannot be had: `triton.compile` then says why."""
    backend = make_backend(_TARGET)
    try:
        parsed = backend.parse_options(dict(options))
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        codegen = backend.get_codegen_implementation(parsed)
        module = source.make_ir(_TARGET, parsed, codegen, backend.get_module_map(), context)
        stages: dict[str, Callable[..., Any]] = {}
        backend.add_stages(stages, parsed, source.language)
        text = _text(module)
    except Exception:
        return None
    metadata = {"target": _TARGET, **parsed.__dict__}
    # `context` must outlive the module.
    return _FrontEnd(text, lambda keep=context: _text(stages["ttir"](module, metadata)))  # type: ignore[misc]


def _text(module: Any) -> str:
    return str(module.str_nodebug() if hasattr(module, "str_nodebug") else module)


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.encode())
    return digest.hexdigest()


def _kept(front: _FrontEnd, options: dict[str, int], depth: CodeDepth) -> Path | None:
    """Where the hash of this front-end IR is kept, by all that it depends on."""
    folder = os.environ.get(CODES_FOLDER)
    if not folder:
        return None
    backend = make_backend(_TARGET)
    parts = (front.text, sorted(options.items()), depth.value, backend.hash(), cache.triton_key())
    key = _hash(repr(parts), os.environ.get("TRITON_DEFAULT_FP_FUSION", ""))
    place = Path(folder) / key[:2]
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        return place / key
    return None


def _source(kernel: JITFunction[Any], signature: Signature) -> ASTSource:
    types = dict(signature.types)
    known = dict(signature.constexprs)
    constexprs = {
        param.name: _constant(known.get(param.name, param.default))
        for param in kernel.params
        if param.name not in types
    }
    return ASTSource(
        fn=kernel,
        signature={name: types.get(name, "constexpr") for name in kernel.arg_names},
        constexprs=constexprs,
    )


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


def _unwrapped(value: Any) -> JITFunction[Any] | None:
    seen = 0
    while not isinstance(value, JITFunction):
        inner = getattr(value, "fn", None)
        if inner is None or seen > 16:
            return None
        value, seen = inner, seen + 1
    return value
