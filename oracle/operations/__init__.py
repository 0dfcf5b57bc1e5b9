"""The built-in operations, and how a subject's operation is found."""

from __future__ import annotations

import importlib

from gatecert.errors import EnvironmentFailure, GatecertError, UsageError, did_you_mean
from gatecert.oracle.operations import (
    attention,
    attention_backward,
    backward,
    convolution,
    dropout,
    elementwise,
    indexing,
    losses,
    masked,
    norms,
    paged,
    products,
    quantization,
    reductions,
    rows,
    varlen,
)
from gatecert.oracle.schema import Operation

_ALL = (
    rows.softmax,
    rows.layer_norm,
    rows.rms_norm,
    rows.cross_entropy,
    products.matmul,
    attention.attention,
    attention.attention_causal,
    elementwise.gelu_erf,
    elementwise.gelu_tanh,
    elementwise.leaky_relu,
    elementwise.silu,
    elementwise.swiglu,
    elementwise.geglu,
    losses.cross_entropy_backward,
    indexing.embedding,
    indexing.transpose,
    indexing.rope,
    quantization.quantize_int8,
    quantization.dequantize_int8,
    dropout.dropout,
    rows.log_softmax,
    norms.l2_norm,
    norms.group_norm,
    reductions.row_moments,
    reductions.argmax,
    reductions.cumsum,
    backward.layer_norm_backward,
    backward.rms_norm_backward,
    backward.softmax_backward,
    products.matmul_batched,
    attention.attention_grouped_query,
    attention_backward.attention_backward,
    convolution.causal_conv1d,
    varlen.attention_varlen,
    varlen.segment_sum,
    masked.masked_softmax,
    paged.paged_attention,
    norms.add_rms_norm,
    quantization.quantize_fp8,
    quantization.dequantize_fp8,
)


def operations() -> tuple[Operation, ...]:
    """Every built-in operation, in a fixed order."""
    return _ALL


def get_operation(name: str) -> Operation:
    """The built-in operation called `name`.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    known = {operation.name: operation for operation in _ALL}
    if name in known:
        return known[name]
    hint = did_you_mean(name, known)
    raise UsageError(f"unknown operation {name!r}; {hint}")


def resolve_operation(spec: str) -> Operation:
    """A built-in by name, or one of the user's as `module:attribute`.

    Raises:
        UsageError: no such operation, or the attribute is not one.
        EnvironmentFailure: the module cannot be imported.
    """
    module_name, colon, attribute = spec.partition(":")
    if not colon:
        return get_operation(spec)
    try:
        module = importlib.import_module(module_name)
    except GatecertError:  # a schema that does not fit, for instance, says so itself
        raise
    except Exception as error:
        raise EnvironmentFailure(
            f"operation {spec!r}: importing {module_name} raised {type(error).__name__}: {error}"
        ) from error
    found = getattr(module, attribute, None)
    if not isinstance(found, Operation):
        raise UsageError(
            f"operation {spec!r}: {module_name} has no operation {attribute!r}; decorate its "
            "reference with @gatecert.operation(...)"
        )
    return found


__all__ = ["Operation", "get_operation", "operations", "resolve_operation"]
