"""Operations: a mathematical function whose annotations are its schema.

    @operation(alpha=Scalar(-2.0, 2.0))
    def scaled_add(x: Tensor["B N"], y: Tensor["B N"], alpha: float) -> Tensor["B N"]:
        return x + alpha * y               # float64 CPU tensors in and out

Where a type checker reads the code, `Annotated[torch.Tensor, Tensor["B N"]]` says the same.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin

from gatecert.errors import UsageError
from gatecert.oracle.formats import FORMATS, torch_dtype
from gatecert.oracle.values import FINITE_RECIPES, RECIPES

Sizes = Mapping[str, int]
Reference = Callable[..., Any]
_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_DIM = re.compile(r"(\d+|\d*[A-Za-z_]\w*)(\*\d*[A-Za-z_]\w*)*")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor: dims by name (`N`, `2N`, `G*H`, `4`), kind of element, and its values.

    `kind` is `"float"` (the tested dtype), a float dtype that stays whatever is tested, or an
    integer dtype, drawn from [low, high) where `high` may be a dim; `marker` is an integer that
    takes the place of some entries, as an ignored class does: of all of them only where
    `all_marked` says so, in the recipe `ties`. An integer
    output whose reference is a float is one that a kernel rounds to. `axis` is the axis that a
    recipe treats as "the row"; `stand_ins` maps a recipe to the one that this tensor takes
    instead (`"*"`: any).
    """

    dims: tuple[str, ...]
    name: str = ""
    kind: str = "float"
    low: int = 0
    high: str | int = 2
    marker: int | None = None
    all_marked: bool = False
    axis: int = -1
    stand_ins: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """The shape under these dims."""
        return tuple(_size(dim, sizes) for dim in self.dims)

    @property
    def named_dims(self) -> tuple[str, ...]:
        """The names among its dims, those of products one by one."""
        names = (factor for dim in self.dims for factor in _factors(dim))
        return tuple(name for name in names if not name.isdigit())

    def dtype(self, tested: str) -> str:
        """The dtype of its elements where `tested` is the tested one."""
        return tested if self.kind == "float" else self.kind

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return self.kind == "float" or self.kind in FORMATS

    def recipe(self, name: str) -> str:
        """The recipe that this tensor takes in a case whose recipe is `name`."""
        return self.stand_ins.get(name, self.stand_ins.get("*", name))


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in [low, high], drawn per case; `logarithmic` spreads it over magnitudes.

    An `integer` one is drawn, and handed over, as an int.
    """

    low: float
    high: float
    logarithmic: bool = False
    integer: bool = False


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """A scalar argument: its range, and the default of the reference's signature if any."""

    name: str
    scalar: Scalar
    default: float | None = None


class Tensor:
    """`Tensor["B N"]` is a tensor of the tested dtype with named dims."""

    def __class_getitem__(cls, dims: str) -> TensorSpec:
        return tensor(dims)

    @staticmethod
    def int(
        dims: str,
        *,
        high: str | int,
        low: int = 0,
        marker: int | None = None,
        all_marked: bool = False,
    ) -> TensorSpec:
        """An int64 tensor with values in [low, high); `high` may be a dim."""
        made = replace(tensor(dims), kind="int64", low=low, high=high)
        return replace(made, marker=marker, all_marked=all_marked)


def tensor(
    dims: str,
    *,
    kind: str = "float",
    low: int = 0,
    high: str | int = 2,
    axis: int = -1,
    stand_ins: Mapping[str, str] = _NOTHING,
) -> TensorSpec:
    """A tensor, by default of the tested dtype; `Tensor[dims]` with the finer points.

    Raises:
        UsageError: a dim is neither a name, a number, a number before a name (`2N`), nor a
            product of such (`G*H`); or the kind is no dtype.
    """
    names = tuple(dims.split())
    for dim in names:
        if not _DIM.fullmatch(dim):
            raise UsageError(f'Tensor["{dims}"]: {dim!r} is no dim; write names, like "B 2N G*H"')
    if kind != "float":
        torch_dtype(kind)
    return TensorSpec(names, kind=kind, low=low, high=high, axis=axis, stand_ins=stand_ins)


@dataclass(frozen=True, slots=True)
class Operation:
    """A function with a schema of inputs and an fp64 reference.

    `reference(*tensors, **scalars)` takes and gives float64 CPU tensors (integers stay
    int64). `second` is an independent formulation of it. `shadow(y, *tensors, **scalars)`
    gives, per element of the (first) output, the sum of magnitudes that rounding acts on, in
    units of the output; `mid_shadow` the same for a declared lower-precision step. `tiled`
    names the dims that kernels cut into blocks; `sizes` holds dims with a few allowed sizes.
    """

    name: str
    inputs: tuple[TensorSpec | ScalarSpec, ...]
    outputs: tuple[TensorSpec, ...]
    reference: Reference
    second: Reference | None = None
    shadow: Reference | None = None
    mid_shadow: Reference | None = None
    reduction_length: Callable[[Sizes], int] = lambda sizes: 1
    contraction: bool = False
    exact_on_integers: bool = False
    """Sums of products of {-1, 0, 1}: exact in any order while they stay below 2^24."""
    recipes: tuple[str, ...] = ()
    """The value recipes of its domain."""
    tiled: tuple[str, ...] = ()
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: _NOTHING)
    in_place: tuple[str, ...] = ()
    """Inputs that an implementation may overwrite."""
    summary: str = ""

    @property
    def dims(self) -> tuple[str, ...]:
        """Named dims, in the order of first mention."""
        specs = (*self.tensors, *self.outputs)
        return tuple(dict.fromkeys(dim for spec in specs for dim in spec.named_dims))

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """The tensor inputs, in call order."""
        return tuple(spec for spec in self.inputs if isinstance(spec, TensorSpec))

    @property
    def scalars(self) -> tuple[ScalarSpec, ...]:
        """The scalar inputs, in call order."""
        return tuple(spec for spec in self.inputs if isinstance(spec, ScalarSpec))

    def call(self, function: Reference, args: Sequence[Any]) -> Any:
        """Call `function(*tensors, **scalars)` with arguments in call order."""
        named = list(zip(self.inputs, args, strict=True))
        tensors = [arg for spec, arg in named if isinstance(spec, TensorSpec)]
        scalars = {spec.name: arg for spec, arg in named if isinstance(spec, ScalarSpec)}
        return function(*tensors, **scalars)


def _size(dim: str, sizes: Sizes) -> int:
    return math.prod(int(f) if f.isdigit() else sizes[f] for f in _factors(dim))


def _factors(dim: str) -> list[str]:
    """`2N` -> 2, N; `G*H` -> G, H."""
    return re.findall(r"[A-Za-z_]\w*|\d+", dim)


def operation(
    *,
    name: str | None = None,
    second: Reference | None = None,
    shadow: Reference | None = None,
    mid_shadow: Reference | None = None,
    reduces: str | Sequence[str] = (),
    contraction: bool = False,
    exact_on_integers: bool = False,
    recipes: Sequence[str] | None = None,
    tiled: str | Sequence[str] | None = None,
    sizes: Mapping[str, Sequence[int]] = _NOTHING,
    in_place: Sequence[str] = (),
    outputs: Sequence[str] = (),
    **scalars: Scalar,
) -> Callable[[Reference], Operation]:
    """Make an `Operation` of a reference function; every other keyword is a scalar's range.

    `reduces` names the reduced dims (the longest one is the reduction length), `tiled` those
    that kernels cut into blocks (default: the last dim of the first tensor), `outputs` the
    results. Without a `shadow` the tolerance rests on noise after rounding the reference's
    inputs (see `oracle.shadows`), which is less sharp.

    Raises:
        UsageError: an annotation, scalar, recipe or dim does not fit.
    """

    def decorate(function: Reference) -> Operation:
        label = name or function.__name__
        inputs, results = _read_signature(label, function, scalars)
        tensors = [spec for spec in inputs if isinstance(spec, TensorSpec)]
        if not tensors:
            raise UsageError(f'operation {label!r}: annotate at least one Tensor["..."] input')
        last = list(tensors[0].named_dims[-1:])
        reduced = reduces.split() if isinstance(reduces, str) else list(reduces)
        cut = last if tiled is None else tiled.split() if isinstance(tiled, str) else list(tiled)
        made = Operation(
            name=label,
            inputs=inputs,
            outputs=_named(results, outputs),
            reference=function,
            second=second,
            shadow=shadow,
            mid_shadow=mid_shadow,
            reduction_length=lambda sizes: max((sizes[dim] for dim in reduced), default=1),
            contraction=contraction,
            exact_on_integers=exact_on_integers,
            recipes=FINITE_RECIPES if recipes is None else tuple(recipes),
            tiled=tuple(cut),
            sizes=MappingProxyType({dim: tuple(found) for dim, found in sizes.items()}),
            in_place=tuple(in_place),
            summary=(inspect.getdoc(function) or "").partition("\n")[0],
        )
        _check(made, reduced)
        return made

    return decorate


def _read_signature(
    label: str, function: Reference, scalars: Mapping[str, Scalar]
) -> tuple[tuple[TensorSpec | ScalarSpec, ...], tuple[TensorSpec, ...]]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise UsageError(f"operation {label!r}: annotation not understood: {error}") from None
    inputs: list[TensorSpec | ScalarSpec] = []
    for parameter in signature.parameters.values():
        spec = _spec(parameter.annotation)
        if spec is not None:
            inputs.append(replace(spec, name=parameter.name))
        elif isinstance(scalars.get(parameter.name), Scalar):
            default = parameter.default
            given = float(default) if isinstance(default, (int, float)) else None
            inputs.append(ScalarSpec(parameter.name, scalars[parameter.name], given))
        else:
            raise UsageError(
                f"operation {label!r}: argument {parameter.name!r} is neither annotated "
                f'Tensor["..."] nor given a range: @operation({parameter.name}=Scalar(low, high))'
            )
    for scalar in scalars:
        if scalar not in signature.parameters:
            raise UsageError(f"operation {label!r}: there is no argument {scalar!r}")
    returned = signature.return_annotation
    parts = get_args(returned) if get_origin(returned) is tuple else (returned,)
    results = tuple(_spec(part) for part in parts)
    if any(spec is None for spec in results):
        raise UsageError(f'operation {label!r}: annotate what it returns with Tensor["..."]')
    return tuple(inputs), tuple(spec for spec in results if spec is not None)


def _spec(annotation: Any) -> TensorSpec | None:
    if get_origin(annotation) is Annotated:
        return next((x for x in get_args(annotation) if isinstance(x, TensorSpec)), None)
    return annotation if isinstance(annotation, TensorSpec) else None


def _named(results: tuple[TensorSpec, ...], names: Sequence[str]) -> tuple[TensorSpec, ...]:
    numbered = [f"output{number}" for number in range(len(results))]
    chosen = list(names) or (["output"] if len(results) == 1 else numbered)
    return tuple(replace(spec, name=name) for spec, name in zip(results, chosen, strict=True))


def _check(made: Operation, reduced: Sequence[str]) -> None:
    for what, dims in (("reduces", reduced), ("tiled", made.tiled), ("sizes", made.sizes)):
        for dim in dims:
            if dim not in made.dims:
                raise UsageError(
                    f"operation {made.name!r}: {what} names dim {dim!r}; "
                    f"its dims are {', '.join(made.dims)}"
                )
    for recipe in made.recipes:
        if recipe not in RECIPES:
            raise UsageError(f"operation {made.name!r}: unknown recipe {recipe!r}")
    names = [spec.name for spec in made.tensors]
    for argument in made.in_place:
        if argument not in names:
            raise UsageError(f"operation {made.name!r}: no tensor {argument!r} to be in place")


__all__ = ["Operation", "Scalar", "ScalarSpec", "Tensor", "TensorSpec", "operation", "tensor"]
