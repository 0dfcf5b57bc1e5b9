"""Read an operation's schema from the annotations of its reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from gatecert.errors import UsageError
from gatecert.oracle.dims import check_dim
from gatecert.oracle.specs import Scalar, ScalarSpec, Size, SizeSpec, TensorSpec

InputSpec = TensorSpec | ScalarSpec | SizeSpec
Inputs = tuple[InputSpec, ...]
Outputs = tuple[TensorSpec, ...]


def read_signature(
    label: str, function: Callable[..., Any], scalars: Mapping[str, Scalar | Size]
) -> tuple[Inputs, Outputs]:
    """Inputs in call order, and results in theirs, yet without names.

    Raises:
        UsageError: an argument or result has no annotation that says what it is.
    """
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise UsageError(f"operation {label!r}: annotation not understood: {error}") from None
    inputs: list[InputSpec] = []
    for parameter in signature.parameters.values():
        spec, scalar = _spec(parameter.annotation), scalars.get(parameter.name)
        if spec is not None:
            inputs.append(replace(spec, name=parameter.name))
        elif isinstance(scalar, Scalar):
            default = parameter.default
            given = float(default) if isinstance(default, (int, float)) else None
            inputs.append(ScalarSpec(parameter.name, scalar, given))
        elif isinstance(scalar, Size):
            check_dim(scalar.dim, f"operation {label!r}: argument {parameter.name!r}")
            inputs.append(SizeSpec(parameter.name, scalar.dim))
        else:
            raise UsageError(
                f"operation {label!r}: argument {parameter.name!r} is neither annotated "
                f'Tensor["..."] nor given a range: @operation({parameter.name}=Scalar(low, high))'
            )
    for name in scalars:
        if name not in signature.parameters:
            raise UsageError(f"operation {label!r}: there is no argument {name!r}")
    returned = signature.return_annotation
    parts = get_args(returned) if get_origin(returned) is tuple else (returned,)
    results = tuple(_spec(part) for part in parts)
    if any(spec is None for spec in results):
        raise UsageError(f'operation {label!r}: annotate what it returns with Tensor["..."]')
    return tuple(inputs), tuple(spec for spec in results if spec is not None)


def name_results(label: str, results: Outputs, names: Sequence[str], inputs: Inputs) -> Outputs:
    """The results with names: those given; else those of the destinations, then numbers.

    Raises:
        UsageError: there are not as many names as results, or more destinations, or one
            differs from its result.
    """
    destinations = [s for s in inputs if isinstance(s, TensorSpec) and s.destination]
    if names and len(names) != len(results):
        raise UsageError(
            f"operation {label!r}: {len(names)} names in outputs for {len(results)} results"
        )
    if len(set(names)) < len(names):
        raise UsageError(f"operation {label!r}: outputs have one name twice: {', '.join(names)}")
    if len(destinations) > len(results):
        raise UsageError(
            f"operation {label!r}: {len(destinations)} destinations for {len(results)} results"
        )
    numbered = [f"output{number}" for number in range(len(results))]
    chosen = list(names) or (["output"] if len(results) == 1 else numbered)
    for number, (spec, result) in enumerate(zip(destinations, results, strict=False)):
        if (spec.dims, spec.kind) != (result.dims, result.kind):
            raise UsageError(
                f"operation {label!r}: destination {spec.name!r} is {_shown(spec)}, but the result "
                f"that it receives is {_shown(result)}"
            )
        if names and chosen[number] != spec.name:
            raise UsageError(
                f"operation {label!r}: result {chosen[number]!r} goes to destination "
                f"{spec.name!r}; give both one name"
            )
        chosen[number] = spec.name
    return tuple(replace(spec, name=name) for spec, name in zip(results, chosen, strict=True))


def _shown(spec: TensorSpec) -> str:
    kind = "" if spec.kind == "float" else f" {spec.kind}"
    return f"[{' '.join(spec.dims)}]{kind}"


def _spec(annotation: Any) -> TensorSpec | None:
    """The tensor that an annotation declares; `... | None` makes it optional."""
    if isinstance(annotation, TensorSpec):
        return annotation
    if get_origin(annotation) is Annotated:
        return next((x for x in get_args(annotation) if isinstance(x, TensorSpec)), None)
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        found = _spec(parts[0]) if len(parts) == 1 else None
        return None if found is None else replace(found, optional=True)
    return None


__all__ = ["InputSpec", "name_results", "read_signature"]
