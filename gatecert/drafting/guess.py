"""Which built-in operation a function computes: said only where its name and parameters say it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gatecert.drafting.parameters import FunctionNode, Parameter, ParameterKind, parameters_of
from gatecert.oracle.operations import Operation, operations
from gatecert.oracle.schema import TensorSpec

_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "softmax": ("rowsoftmax",),
    "log_softmax": (),
    "layer_norm": (),
    "rms_norm": (),
    "matmul": ("mm", "gemm"),
    "matmul_batched": ("bmm", "batchedmatmul"),
    "leaky_relu": (),
    "silu": ("swish",),
    "swiglu": (),
    "gelu_tanh": ("tanhgelu",),
    "gelu_erf": ("erfgelu",),
    "transpose": ("transpose2d",),
    "argmax": (),
    "causal_conv1d": (),
    "layer_norm_backward": ("layernormbwd",),
    "rms_norm_backward": ("rmsnormbwd",),
}
"""Operations whose name says all, with other spellings of it."""
_AMBIGUOUS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "gelu_tanh": (("gelu",), "gelu by tanh; the exact one is gelu_erf"),
    "geglu": ((), "gelu by tanh of the first tensor, times the second"),
    "cross_entropy": (("crossentropyloss",), "the mean over rows, labels of -100 ignored"),
    "attention": (
        ("flashattention", "flashattn", "scaleddotproductattention", "sdpa"),
        "[B, H, S, D], scaled by 1/sqrt(D), not causal; the causal one is attention_causal",
    ),
    "attention_causal": (("causalattention",), "[B, H, S, D], scaled by 1/sqrt(D), causal"),
    "embedding": ((), "called as embedding(weight, index)"),
    "rope": (("rotary", "rotaryembedding", "applyrope"), "pairs are the two halves of a row"),
    "l2_norm": (("l2normalize",), "rows over their length, not the length itself"),
    "group_norm": ((), "[B, C, S] in six groups"),
    "cumsum": ((), "along each row, with a flag for the other direction"),
    "dropout": ((), "triton's own random numbers, by seed and offset"),
    "quantize_int8": ((), "per row, by its largest magnitude"),
    "dequantize_int8": ((), "per row"),
    "attention_grouped_query": (("gqa", "groupedqueryattention"), "[B, G*H, S, D] queries"),
}
"""Operations that a name may mean, with other spellings and what ours computes."""
_FILLERS = frozenset(
    {
        *("triton", "fused", "fast", "my", "custom", "naive", "online", "kernel", "op", "wrapper"),
        *("launch", "run", "call", "apply", "forward", "fwd", "gpu", "v1", "v2", "v3", "tl"),
    }
)


class Guess(NamedTuple):
    """An operation, and how sure: `sure` means by name and parameters, with no other reading.

    `why` is a sentence for the draft. `operation` is "" where nothing fits.
    """

    operation: str
    sure: bool
    why: str


def guess_operation(function: FunctionNode) -> Guess:
    """The built-in operation that the function seems to compute."""
    known = {operation.name: operation for operation in operations()}
    spelled = _spelling(function.name)
    for name in known:
        sure, others = name in _SPELLINGS, _SPELLINGS.get(name, ())
        unsure, what = _AMBIGUOUS.get(name, ((), ""))
        if spelled not in (_spelling(name), *others, *unsure):
            continue
        operation = known[name]
        parameters = parameters_of(function)
        if not _fits(parameters, operation, bool(function.args.vararg)):
            called = ", ".join(spec.name for spec in operation.inputs)
            return Guess(name, False, f"by its name, but the oracle calls it with ({called})")
        if sure and spelled in (_spelling(name), *others):
            count = len(operation.tensors)
            tensors = "1 tensor parameter" if count == 1 else f"{count} tensor parameters"
            return Guess(name, True, f"guessed from the name and {tensors}")
        return Guess(name, False, f"by its name: is it {what}?")
    return Guess("", False, "not recognised by its name")


def _spelling(name: str) -> str:
    """The name in lower case without underscores, and without words that say nothing of what is
    computed."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
    return "".join(word for word in words if word not in _FILLERS) or "".join(words)


def _fits(parameters: Sequence[Parameter], operation: Operation, more: bool) -> bool:
    """Whether it can be called with the operation's arguments by position, and takes as many
    tensors."""
    given = operation.inputs
    if sum(parameter.required for parameter in parameters) > len(given):
        return False
    if len(parameters) < len(given) and not more:
        return False
    for spec, parameter in zip(given, parameters, strict=False):
        wrong = ParameterKind.SCALAR if isinstance(spec, TensorSpec) else ParameterKind.TENSOR
        if parameter.kind is wrong:
            return False
    tensors = [p for p in parameters if p.required and p.kind is ParameterKind.TENSOR]
    return len(tensors) <= len(operation.tensors)
