"""Compile every corpus kernel for sm_90 in every dtype; a JSON list goes to stdout.

A launch is recorded instead of run, so neither GPU nor driver is needed. Integers are compiled as
general ones: no divisibility, no value 1.
"""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import interpreted
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.subjects import load_entry

TARGET = GPUTarget("cuda", 90, 32)
POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}


def source(kernel: JITFunction[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ASTSource:
    """What `triton.compile` takes, from the arguments of one launch."""
    names = inspect.signature(kernel.fn).parameters
    bound = inspect.signature(kernel.fn).bind(*args, **{k: kwargs[k] for k in kwargs if k in names})
    constants = {p.name: bound.arguments[p.name] for p in kernel.params if p.is_constexpr}
    types = {}
    for name, value in bound.arguments.items():
        if name in constants:
            types[name] = "constexpr"
        elif isinstance(value, torch.Tensor):
            types[name] = POINTERS[value.dtype]
        else:
            types[name] = "fp32" if isinstance(value, float) else "i32"
    return ASTSource(kernel, types, constants)


def main() -> None:
    launched: list[tuple[JITFunction[Any], tuple[Any, ...], dict[str, Any]]] = []
    JITFunction.run = lambda kernel, *args, grid, warmup, **kwargs: launched.append(
        (kernel, args, kwargs)
    )
    rows = []
    for subject in load_config(CORPUS_CONFIG).subjects:
        entry = load_entry(subject)
        shape = list(interpreted.shapes(str(subject.operation)))[-1]
        scalars = [0.01] * (subject.operation in ("layer_norm", "rms_norm", "leaky_relu"))
        for dtype in subject.dtypes:
            launched.clear()
            entry(*(torch.zeros(size, dtype=getattr(torch, dtype)) for size in shape), *scalars)
            for kernel, args, kwargs in launched:
                binary = triton.compile(source(kernel, args, kwargs), target=TARGET)
                rows.append(
                    {
                        "subject": subject.name,
                        "dtype": dtype,
                        "kernel": f"{kernel.fn.__module__}:{kernel.fn.__qualname__}",
                        "cubin_bytes": len(binary.asm["cubin"]),
                    }
                )
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
