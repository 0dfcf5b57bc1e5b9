"""Operations: a mathematical function whose annotations are its schema.

    @operation(alpha=Scalar(-2.0, 2.0))
    def scaled_add(x: Tensor["B N"], y: Tensor["B N"], alpha: float) -> Tensor["B N"]:
        return x + alpha * y               # float64 CPU tensors in and out

Where a type checker reads the code, `Annotated[torch.Tensor, Tensor["B N"]]` says the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch

from gatecert.errors import UsageError
from gatecert.oracle.declarations import check_declarations
from gatecert.oracle.dims import Sizes, names_in, size_of_dim, substitute, written_out
from gatecert.oracle.exact import Exactness, Kind
from gatecert.oracle.relations import NO_RELATIONS, Relations
from gatecert.oracle.signature import InputSpec, name_results, read_signature
from gatecert.oracle.specs import (
    Scalar,
    ScalarSpec,
    Seed,
    Size,
    SizeSpec,
    Tensor,
    TensorSpec,
    tensor,
)
from gatecert.oracle.values import EXACT_RECIPES, FINITE_RECIPES

Reference = Callable[..., Any]
Unread = Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]
"""Of all tensors of a case by name, masks by name that are true where nothing is read."""
_NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Operation:
    """A function with a schema of inputs and an fp64 reference.

    `reference(*tensors, **scalars)` takes and gives float64 CPU tensors (integers stay
    int64); None stands for an optional one that is left out, and for a destination. `second` is
    an independent formulation of it. `shadow(y, *tensors, **scalars)`
    gives, per element of the (first) output, the sum of magnitudes that rounding acts on, in
    units of the output; `mid_shadow` the same for a declared lower-precision step. `tiled`
    names the dims that kernels cut into blocks; `sizes` holds dims with a few allowed sizes.
    """

    name: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[TensorSpec, ...]
    reference: Reference
    second: Reference | None = None
    shadow: Reference | None = None
    mid_shadow: Reference | None = None
    reduction_length: Callable[[Sizes], int] = lambda sizes: 1
    contraction: bool = False
    exact: Exactness | None = None
    """What of it is exact on which inputs: it selects, or it is linear."""
    relations: Relations = NO_RELATIONS
    """What holds between outputs for related inputs."""
    recipes: tuple[str, ...] = ()
    """The value recipes of its domain."""
    tiled: tuple[str, ...] = ()
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: _NOTHING)
    in_place: tuple[str, ...] = ()
    """Inputs that an implementation may overwrite."""
    empty: tuple[str, ...] = ()
    """Dims that may be 0. A case has that only where the team lists the size."""
    unread: Unread | None = None
    """Which places of tensors hold no part of the input: they are NaN. A kernel may load them, as
    long as they do not count."""
    summary: str = ""

    @property
    def dims(self) -> tuple[str, ...]:
        """Named dims that are drawn, in the order of first mention: derived ones are written out.

        Those that only values depend on (a range of indices) come last.
        """
        specs = (*self.tensors, *self.outputs)
        shapes = (dim for spec in specs for dim in spec.named_dims)
        ranges = (dim for spec in specs for dim in spec.range_dims)
        sizes = (dim for s in self.inputs if isinstance(s, SizeSpec) for dim in names_in(s.dim))
        return tuple(dict.fromkeys((*shapes, *ranges, *sizes)))

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """The tensor inputs, in call order, destinations included."""
        return tuple(spec for spec in self.inputs if isinstance(spec, TensorSpec))

    @property
    def scalars(self) -> tuple[ScalarSpec, ...]:
        """The scalar inputs, in call order."""
        return tuple(spec for spec in self.inputs if isinstance(spec, ScalarSpec))

    @property
    def optional(self) -> tuple[str, ...]:
        """The inputs that may be left out."""
        return tuple(spec.name for spec in self.tensors if spec.optional)

    @property
    def destinations(self) -> tuple[str, ...]:
        """The arguments that receive results."""
        return tuple(spec.name for spec in self.tensors if spec.destination)

    def outputs_of(self, args: Sequence[Any]) -> tuple[TensorSpec, ...]:
        """The results that there are for arguments in call order: see `TensorSpec.when`."""
        given = {spec.name: arg for spec, arg in zip(self.inputs, args, strict=True)}
        scalars = {spec.name for spec in self.scalars}
        return tuple(
            spec
            for spec in self.outputs
            if not spec.when
            or (given[spec.when] != 0 if spec.when in scalars else given[spec.when] is not None)
        )

    def returned(self, args: Sequence[Any], result: Any) -> tuple[Any, ...]:
        """What a call returned, without the None that stands for a result that is not there."""
        parts = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        there = self.outputs_of(args)
        if len(parts) != len(self.outputs) or len(there) == len(parts):
            return parts
        return tuple(
            part
            for spec, part in zip(self.outputs, parts, strict=True)
            if spec in there or part is not None
        )

    def call(self, function: Reference, args: Sequence[Any]) -> Any:
        """Call `function(*tensors, **scalars)` with arguments in call order."""
        named = list(zip(self.inputs, args, strict=True))
        tensors = [
            None if spec.destination else arg for spec, arg in named if isinstance(spec, TensorSpec)
        ]
        scalars = {spec.name: arg for spec, arg in named if not isinstance(spec, TensorSpec)}
        return function(*tensors, **scalars)


def operation(
    *,
    name: str | None = None,
    second: Reference | None = None,
    shadow: Reference | None = None,
    mid_shadow: Reference | None = None,
    reduces: str | Sequence[str] = (),
    contraction: bool = False,
    exact: Exactness | None = None,
    relations: Relations = NO_RELATIONS,
    recipes: Sequence[str] | None = None,
    tiled: str | Sequence[str] | None = None,
    derived: Mapping[str, str] = _NOTHING,
    sizes: Mapping[str, Sequence[int]] = _NOTHING,
    in_place: Sequence[str] = (),
    empty: str | Sequence[str] = (),
    unread: Unread | None = None,
    outputs: Sequence[str] = (),
    **scalars: Scalar | Size,
) -> Callable[[Reference], Operation]:
    """Make an `Operation` of a reference function; every other keyword is a scalar's range or size.

    `reduces` names the reduced dims (the longest one is the reduction length), `tiled` those
    that kernels cut into blocks (default: the last dim of the first tensor), `derived` dims that
    follow from others (`{"Hq": "G*Hkv"}`; every other dim is drawn), `empty` those that
    may be 0, `unread` the places of tensors that hold no part of the input, `outputs` the results,
    `exact` what of it is exact (`oracle.exact`), `relations` what holds between outputs
    (`oracle.relations`). Without a `shadow` the tolerance rests on noise
    after rounding the reference's inputs (see `oracle.shadows`), which is less sharp.

    Raises:
        UsageError: an annotation, scalar, recipe or dim does not fit.
    """

    def decorate(function: Reference) -> Operation:
        label = name or function.__name__
        rules = written_out(derived, f"operation {label!r}")
        inputs, results = read_signature(label, function, scalars)
        inputs = tuple(_written_out(spec, rules) for spec in inputs)
        results = tuple(spec.substituted(rules) for spec in results)
        tensors = [spec for spec in inputs if isinstance(spec, TensorSpec)]
        if not tensors:
            raise UsageError(f'operation {label!r}: annotate at least one Tensor["..."] input')
        last = list(tensors[0].named_dims[-1:])
        reduced = reduces.split() if isinstance(reduces, str) else list(reduces)
        reduced = [substitute(dim, rules) for dim in reduced]
        cut = last if tiled is None else tiled.split() if isinstance(tiled, str) else list(tiled)
        made = Operation(
            name=label,
            inputs=inputs,
            outputs=name_results(label, results, outputs, inputs),
            reference=function,
            second=second,
            shadow=shadow,
            mid_shadow=mid_shadow,
            reduction_length=lambda sizes: max(
                (size_of_dim(dim, sizes) for dim in reduced), default=1
            ),
            contraction=contraction,
            exact=exact,
            relations=relations,
            recipes=_with_probes(FINITE_RECIPES if recipes is None else recipes, exact),
            tiled=tuple(cut),
            sizes=MappingProxyType({dim: tuple(found) for dim, found in sizes.items()}),
            in_place=tuple(in_place),
            empty=tuple(empty.split() if isinstance(empty, str) else empty),
            unread=unread,
            summary=(inspect.getdoc(function) or "").partition("\n")[0],
        )
        check_declarations(made, reduced, tuple(rules))
        return made

    return decorate


def _written_out(spec: InputSpec, rules: Mapping[str, str]) -> InputSpec:
    """The input with derived dims written out."""
    if isinstance(spec, TensorSpec):
        return spec.substituted(rules)
    return SizeSpec(spec.name, substitute(spec.dim, rules)) if isinstance(spec, SizeSpec) else spec


def _with_probes(recipes: Sequence[str], exact: Exactness | None) -> tuple[str, ...]:
    probes = EXACT_RECIPES if exact is not None and exact.kind is Kind.LINEAR else ()
    return tuple(dict.fromkeys((*recipes, *probes)))


__all__ = [
    "Operation",
    "Reference",
    "Scalar",
    "ScalarSpec",
    "Seed",
    "Size",
    "SizeSpec",
    "Sizes",
    "Tensor",
    "TensorSpec",
    "operation",
    "tensor",
]
