"""Compile every corpus kernel for sm_90 in every dtype; rows by subject go to stdout as JSON.

A launch is recorded instead of run, so neither GPU nor driver is needed. Integers are compiled as
general ones: no divisibility, no value 1.
"""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from collections.abc import Iterator
from typing import Any, TypeAlias

import interpreted
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.subjects import Subject, load_entry
from tests.gatecert.corpus.formulas import FORMULAS

TARGET = GPUTarget("cuda", 90, 32)
POINTERS = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.int8: "*i8",
    torch.bool: "*i1",
    torch.float8_e4m3fn: "*fp8e4nv",
    torch.float8_e5m2: "*fp8e5",
}
Launch: TypeAlias = tuple[JITFunction[Any], tuple[Any, ...], dict[str, Any]]


def source(kernel: JITFunction[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ASTSource:
    """What `triton.compile` takes, from the arguments of one launch."""
    names = inspect.signature(kernel.fn).parameters
    bound = inspect.signature(kernel.fn).bind(*args, **{k: kwargs[k] for k in kwargs if k in names})
    constants = {p.name: bound.arguments[p.name] for p in kernel.params if p.is_constexpr}
    constants |= {name: None for name, value in bound.arguments.items() if value is None}
    annotated = {p.name: p.annotation_type for p in kernel.params if not p.is_constexpr}
    types = {}
    for name, value in bound.arguments.items():
        if name in constants:
            types[name] = "constexpr"
        elif annotated[name]:
            types[name] = annotated[name]
        elif isinstance(value, torch.Tensor):
            types[name] = POINTERS[value.dtype]
        else:
            types[name] = "fp32" if isinstance(value, float) else "i32"
    return ASTSource(kernel, types, constants)


def compile_subject(subject: Subject, launched: list[Launch]) -> Iterator[dict[str, object]]:
    """A row per kernel and dtype; `launched` fills as the subject's entry runs."""
    entry, formula = load_entry(subject), FORMULAS[str(subject.operation)]
    for dtype in subject.dtypes:
        launched.clear()
        generator = torch.Generator().manual_seed(0)
        inputs = interpreted.make_inputs(formula, formula.shapes[-1], dtype, generator)
        entry(*inputs, *formula.scalars)
        for kernel, args, kwargs in launched:
            binary = triton.compile(source(kernel, args, kwargs), target=TARGET)
            yield {
                "dtype": dtype,
                "kernel": f"{kernel.fn.__module__}:{kernel.fn.__qualname__}",
                "cubin_bytes": len(binary.asm["cubin"]),
            }


def run_every_configuration(tuner: Any, *args: Any, **kwargs: Any) -> None:
    """In the place of a benchmark, which needs a GPU."""
    for config in tuner.configs:
        tuner.fn.run(*args, **kwargs, **config.kwargs)


def main() -> None:
    Autotuner.run = run_every_configuration
    launched: list[Launch] = []
    JITFunction.run = lambda kernel, *args, grid, warmup, **kwargs: launched.append(
        (kernel, args, kwargs)
    )
    found: dict[str, list[dict[str, object]]] = {}
    for subject in load_config(CORPUS_CONFIG).subjects:
        try:
            found[subject.name] = list(compile_subject(subject, launched))
        except Exception:
            found[subject.name] = [{"raised": traceback.format_exc()}]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
