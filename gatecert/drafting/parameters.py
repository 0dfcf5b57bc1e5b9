"""What a function's parameters take, as far as its text shows."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_TENSOR_USES = frozenset(
    {
        *("shape", "stride", "dtype", "device", "is_cuda", "contiguous", "is_contiguous", "numel"),
        *("size", "dim", "ndim", "view", "reshape", "data_ptr", "element_size", "transpose", "T"),
    }
)
"""Attributes that a parameter has only as a tensor."""
_SCALARS = frozenset({"int", "float", "bool", "str", "complex", "torch.dtype", "torch.device"})
_SCALAR_NAMES = frozenset(
    {
        *("eps", "epsilon", "alpha", "beta", "p", "dim", "axis", "scale", "sm_scale", "causal"),
        *("is_causal", "seed", "slope", "negative_slope", "n", "m", "k", "training", "inplace"),
        *("num_heads", "groups", "num_groups", "block_size", "dtype", "device", "reverse"),
    }
)


class ParameterKind(str, enum.Enum):
    """What a parameter takes."""

    TENSOR = "tensor"
    """A tensor, by its annotation or by how it is used."""
    SCALAR = "scalar"
    """A number, flag, name or dtype."""
    UNKNOWN = "unknown"
    """The text does not tell."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that can be given by position."""

    name: str
    kind: ParameterKind
    required: bool


def parameters_of(function: FunctionNode) -> tuple[Parameter, ...]:
    """The positional parameters of a function, in order; of a method without `self`."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    defaults = function.args.defaults
    values: list[ast.expr | None] = [None] * (len(arguments) - len(defaults)) + [*defaults]
    used = set(_used_as_tensors(function))
    found = []
    for argument, value in zip(arguments, values, strict=True):
        if argument.arg in ("self", "cls"):
            continue
        kind = _kind(argument, value, argument.arg in used)
        found.append(Parameter(argument.arg, kind, value is None))
    return tuple(found)


def takes_tensors(function: FunctionNode) -> bool:
    """Whether it can be called with tensors: a required parameter is one, and every required
    keyword has a default."""
    keywords = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    if any(default is None for _, default in keywords):
        return False
    return any(
        parameter.required and parameter.kind is ParameterKind.TENSOR
        for parameter in parameters_of(function)
    )


def signature_of(function: FunctionNode) -> str:
    """`softmax(x, dim=-1)`: its name and parameters, annotations left out."""
    shown = []
    arguments = [*function.args.posonlyargs, *function.args.args]
    defaults = function.args.defaults
    first = len(arguments) - len(defaults)
    for place, argument in enumerate(arguments):
        default = "" if place < first else f"={ast.unparse(defaults[place - first])}"
        shown.append(argument.arg + default)
    if function.args.vararg:
        shown.append(f"*{function.args.vararg.arg}")
    return f"{function.name}({', '.join(shown)})"


def _kind(argument: ast.arg, default: ast.expr | None, used_as_tensor: bool) -> ParameterKind:
    annotation = "" if argument.annotation is None else ast.unparse(argument.annotation)
    if "Tensor" in annotation:
        return ParameterKind.TENSOR
    if annotation.strip("'\"").removesuffix(" | None") in _SCALARS:
        return ParameterKind.SCALAR
    if isinstance(default, ast.UnaryOp):
        default = default.operand
    if isinstance(default, ast.Constant) and default.value is not None:
        return ParameterKind.SCALAR
    if argument.arg.lower() in _SCALAR_NAMES:
        return ParameterKind.SCALAR
    return ParameterKind.TENSOR if used_as_tensor else ParameterKind.UNKNOWN


def _used_as_tensors(function: FunctionNode) -> Iterator[str]:
    """Names that the body asks for what only tensors have, or makes outputs like."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in _TENSOR_USES:
                yield node.value.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            like = node.func.attr.endswith("_like") and node.args
            if like and isinstance(node.args[0], ast.Name):
                yield node.args[0].id
