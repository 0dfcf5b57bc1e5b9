"""Run the subjects of a config against float64 torch in a fresh process; JSON goes to stdout.

Usage: `python interpreted.py GATECERT.TOML`. A subject's rows are {case, excess, dtype, output}:
`excess` is the worst error over what one rounding of the output, float32 arithmetic and a declared
lower-precision step allow, so 1.0 is the limit.
The formulas and layouts are this file's own: they share nothing with the oracle.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from gatecert.config import load_config
from gatecert.subjects import Subject, load_entry

NAN = float("nan")
HALF_ULP = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}
EPS = 1e-5
SLOPE = 0.02
IGNORED = -100

ROWS = [(1, 1), (2, 7), (5, 127), (4, 128), (3, 129), (2, 389)]
MATRICES = [(1, 1, 1), (7, 5, 3), (33, 31, 32), (32, 65, 34), (70, 97, 33), (161, 8, 33)]
HEADS = [(1, 1, 1, 1, 1), (2, 3, 5, 70, 16), (2, 2, 33, 35, 40), (1, 1, 70, 97, 8)]


def softmax(x: torch.Tensor) -> torch.Tensor:
    weights = (x - x.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * weight + bias


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x / ((x * x).mean(-1, keepdim=True) + eps).sqrt() * weight


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return softmax(q @ k.mT / math.sqrt(q.shape[-1])) @ v


def attention_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return softmax(scores.masked_fill(later, -math.inf)) @ v


def gelu_erf(x: torch.Tensor) -> torch.Tensor:
    return x * torch.special.ndtr(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def leaky_relu(x: torch.Tensor, slope: float) -> torch.Tensor:
    return torch.where(x > 0, x, slope * x)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a / (1 + torch.exp(-a)) * b


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return gelu_tanh(a) * b


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    kept = target != IGNORED
    chosen = logits[kept].gather(1, target[kept].unsqueeze(1)).squeeze(1)
    return (logits[kept].logsumexp(-1) - chosen).mean()


REFERENCES: dict[str, Callable[..., torch.Tensor]] = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "matmul": torch.matmul,
    "attention": attention,
    "attention_causal": attention_causal,
    "gelu_erf": gelu_erf,
    "gelu_tanh": gelu_tanh,
    "leaky_relu": leaky_relu,
    "swiglu": swiglu,
    "geglu": geglu,
    "cross_entropy": cross_entropy,
}


def shapes(operation: str) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Shapes of the tensor arguments, tiny and tail sizes among them."""
    if operation == "matmul":
        yield from (((m, k), (k, n)) for m, k, n in MATRICES)
    elif operation == "attention":
        yield from (((b, h, s, d), (b, h, t, d), (b, h, t, d)) for b, h, s, t, d in HEADS)
    elif operation == "attention_causal":
        yield from (((b, h, s, d),) * 3 for b, h, s, _, d in HEADS)
    elif operation in ("swiglu", "geglu"):
        yield from (((b, n), (b, n)) for b, n in ROWS)
    elif operation == "cross_entropy":
        yield from (((b, n), (b,)) for b, n in ROWS)
    else:
        vectors = {"layer_norm": 2, "rms_norm": 1}.get(operation, 0)
        yield from (((b, n), *[(n,)] * vectors) for b, n in ROWS)


def targets(rows: int, classes: int, generator: torch.Generator) -> torch.Tensor:
    """A class for every row; the second row is ignored."""
    target = torch.randint(classes, (rows,), generator=generator)
    target[1:2] = IGNORED
    return target


def widen(values: torch.Tensor) -> torch.Tensor:
    return values.double() if values.is_floating_point() else values


def place(values: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values in another layout, with NaN wherever memory belongs to no element.

    A vector (weight, bias) becomes every other element of its storage, unless contiguous.
    """
    if layout == "contiguous":
        return values
    if layout == "expanded" and values.ndim > 1:
        return values[:1].expand_as(values)
    if layout == "transposed" and values.ndim > 1:
        return values.mT.contiguous().mT
    if layout == "offset_base":
        view = torch.full((5 + values.numel(),), NAN, dtype=values.dtype)[5:].view(values.shape)
    elif values.ndim == 1:
        view = torch.full((2 * len(values),), NAN, dtype=values.dtype)[1::2]
    else:
        above, below, left, right = {"row_padded": (0, 0, 0, 9), "sliced": (1, 2, 3, 4)}[layout]
        *batch, rows, cols = values.shape
        storage = torch.full(
            (*batch, above + rows + below, left + cols + right), NAN, dtype=values.dtype
        )
        view = storage[..., above : above + rows, left : left + cols]
    return view.copy_(values)


def excess(got: torch.Tensor, want: torch.Tensor, scale: float, declared: float) -> float:
    """Worst |got - want| over its allowance; inf where one is NaN or shapes differ."""
    if got.shape != want.shape or bool((got.isnan() | want.isnan()).any()):
        return math.inf
    dtype = str(got.dtype).removeprefix("torch.")
    allowance = HALF_ULP[dtype] * want.abs() + SMALLEST[dtype] + (2.0**-19 + declared) * scale
    return float(((got.double() - want).abs() / allowance).max())


def check(subject: Subject) -> Iterator[dict[str, object]]:
    """Every shape in the plain layout, every layout in one tail shape, and -inf values."""
    entry = load_entry(subject)
    operation = str(subject.operation)
    reference = REFERENCES[operation]
    extra = {"layer_norm": [EPS], "rms_norm": [EPS], "leaky_relu": [SLOPE]}.get(operation, [])
    generator = torch.Generator().manual_seed(0)
    every_shape = list(shapes(operation))
    for dtype in subject.dtypes:
        declared = 4 * HALF_ULP[dtype] if subject.intermediate == "input" else 0.0
        plan = [(shape, "contiguous") for shape in every_shape]
        plan += [(every_shape[-2], layout) for layout in subject.layouts]
        plan += [(shape, "partly -inf") for shape in every_shape if operation == "softmax"]
        for shape, layout in plan:
            inputs = [
                torch.randn(size, generator=generator).mul_(2).to(getattr(torch, dtype))
                for size in shape
            ]
            if operation == "cross_entropy":
                inputs[1] = targets(*shape[0], generator)
            if layout == "partly -inf":
                inputs[0][:, : shape[0][1] * 2 // 3] = -math.inf
                layout = "contiguous"
            inputs = [
                place(values, layout) if values.is_floating_point() else values for values in inputs
            ]
            want = reference(*map(widen, inputs), *extra)
            got = entry(*inputs, *extra)
            scale = max(1.0, float(want.abs().max()))
            yield {
                "case": f"{dtype} {shape} {layout}",
                "excess": excess(got, want, scale, declared),
                "dtype": dtype,
                "output": str(got.dtype).removeprefix("torch."),
            }


def environment(**variables: str) -> dict[str, str]:
    """An environment for a fresh process: one thread, the same import path, interpreter off."""
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    path = os.pathsep.join(filter(None, sys.path))
    return {**inherited, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **variables}


def run(config: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows by subject, from a process of its own; one that raised has its traceback as a row."""
    done = subprocess.run(
        [sys.executable, __file__, str(config)],
        env=environment(TRITON_INTERPRET="1"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def wrong(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that raised, err by more than rounding allows, or have another dtype."""
    return [
        row
        for row in rows
        if "raised" in row or row["excess"] > 1.0 or row["output"] != row["dtype"]
    ]


def main() -> None:
    from gatecert.lanes.interpreter import activate  # only here: it changes the whole process

    activate()
    # A tile's rows past the last one are all -inf and never stored.
    warnings.filterwarnings("ignore", "invalid value encountered", RuntimeWarning)
    subjects = load_config(Path(sys.argv[1])).subjects
    sys.path[:0] = subjects[0].import_paths
    found: dict[str, list[dict[str, object]]] = {}
    for subject in subjects:
        try:
            found[subject.name] = list(check(subject))
        except Exception:
            found[subject.name] = [{"raised": traceback.format_exc()}]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
