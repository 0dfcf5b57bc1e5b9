"""What annotations say of one argument or result: tensors by dims, kind and rule; scalars.

`Tensor["B N"]` is the plain form; `tensor(...)` and the makers of `Tensor` have the finer points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from gatecert.oracle.dims import Sizes, check_dim, names_in, parse_dims, size_of_dim, substitute
from gatecert.oracle.formats import is_float_format, torch_dtype
from gatecert.oracle.index_tensors import Index, get_rule

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor: dims by name (`N`, `2N`, `G*H`, `S+1`, `4`), kind of element, and its values.

    `kind` is `"float"` (the tested dtype), a float dtype that stays whatever is tested, or an
    integer dtype, drawn from [low, high) where `high` may be a dim; `marker` is an integer that
    takes the place of some entries, as an ignored class does: of all of them only where
    `all_marked` says so, in the recipe `ties`. An integer
    output whose reference is a float is one that a kernel rounds to. `axis` is the axis that a
    recipe treats as "the row"; `stand_ins` maps a recipe to the one that this tensor takes
    instead (`"*"`: any). `index` is the rule of an index, offset or mask tensor.

    An `optional` input is left out of some cases (None is given). An output is there only in
    cases that have what `when` names: an optional input, or a scalar that is not 0. A
    `destination` is an argument whose values do not matter and that the kernel writes.
    """

    dims: tuple[str, ...]
    name: str = ""
    kind: str = "float"
    low: int = 0
    high: str | int = 2
    marker: int | None = None
    all_marked: bool = False
    axis: int = -1
    stand_ins: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    index: Index | None = None
    optional: bool = False
    when: str = ""
    destination: bool = False

    def __or__(self, other: None) -> TensorSpec:
        """`Tensor["N"] | None`: an argument that may be left out."""
        if other is not None:
            return NotImplemented
        return replace(self, optional=True)

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """The shape under these dims."""
        return tuple(size_of_dim(dim, sizes) for dim in self.dims)

    @property
    def named_dims(self) -> tuple[str, ...]:
        """The names among its dims, those of products and sums one by one."""
        return tuple(name for dim in self.dims for name in names_in(dim))

    @property
    def range_dims(self) -> tuple[str, ...]:
        """Names that its values, not its shape, depend on."""
        bounds = [self.high, *(self.index.sizes.values() if self.index else ())]
        return tuple(name for bound in bounds if isinstance(bound, str) for name in names_in(bound))

    def dtype(self, tested: str) -> str:
        """The dtype of its elements where `tested` is the tested one."""
        return tested if self.kind == "float" else self.kind

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return self.kind == "float" or is_float_format(self.kind)

    @property
    def may_share_rows(self) -> bool:
        """Whether its rows may be one row of memory: not where each means, or receives, its own."""
        return self.index is None and not self.destination

    def recipe(self, name: str) -> str:
        """The recipe that this tensor takes in a case whose recipe is `name`."""
        return self.stand_ins.get(name, self.stand_ins.get("*", name))

    def substituted(self, rules: Mapping[str, str]) -> TensorSpec:
        """The same with derived dims written out, in its shape and its ranges."""

        def written(dim: str | int) -> str | int:
            return substitute(dim, rules) if isinstance(dim, str) else dim

        index = self.index
        if index is not None:
            sizes = {role: written(size) for role, size in index.sizes.items()}
            index = replace(index, sizes=MappingProxyType(sizes))
        dims = tuple(substitute(dim, rules) for dim in self.dims)
        return replace(self, dims=dims, high=written(self.high), index=index)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in [low, high], drawn per case; `logarithmic` spreads it over magnitudes.

    An `integer` one is drawn, and handed over, as an int. One that is `always_drawn` never takes
    the default of the signature.
    """

    low: float
    high: float
    logarithmic: bool = False
    integer: bool = False
    always_drawn: bool = False


def Seed() -> Scalar:
    """The seed of a random operation: another int in every case, which the reference gets too."""
    return Scalar(0, 2**31 - 1, integer=True, always_drawn=True)


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """A scalar argument: its range, and the default of the reference's signature if any."""

    name: str
    scalar: Scalar
    default: float | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """A number that is the size of a dim, handed over as an int: `count=Size("S")`."""

    dim: str


@dataclass(frozen=True, slots=True)
class SizeSpec:
    """An argument that is the size of a dim."""

    name: str
    dim: str


class Tensor:
    """`Tensor["B N"]` is a tensor of the tested dtype with named dims.

    The makers below are tensors with a rule; `oracle.index_tensors` says what each is and what it
    reveals.
    """

    def __class_getitem__(cls, dims: str) -> TensorSpec:
        return tensor(dims)

    @staticmethod
    def offsets(dims: str, *, total: str, kind: str = "int32") -> TensorSpec:
        """Where sequences packed behind one another begin: `Tensor.offsets("B+1", total="T")`."""
        return _indexed(dims, kind, Index("offsets", {"total": total}))

    @staticmethod
    def lengths(
        dims: str, *, most: str, block: str | int = 0, least: int = 0, kind: str = "int32"
    ) -> TensorSpec:
        """Lengths from `least` to `most`, some of them around multiples of `block`."""
        sizes = {"most": most, "block": block, "least": least}
        return _indexed(dims, kind, Index("lengths", sizes))

    @staticmethod
    def pages(
        dims: str, *, pages: str, block: str | int, lengths: str, kind: str = "int32"
    ) -> TensorSpec:
        """A block table: row b names the pages of `block` slots that hold lengths[b] entries.

        No page is live twice; places past the live ones hold -1.
        """
        sizes = {"pages": pages, "block": block}
        return _indexed(dims, kind, Index("pages", sizes, {"lengths": lengths}))

    @staticmethod
    def segments(dims: str, *, count: str, kind: str = "int64") -> TensorSpec:
        """Segment ids from 0 to `count` - 1 that never fall; some segments are empty."""
        return _indexed(dims, kind, Index("segments", {"count": count}))

    @staticmethod
    def permutation(dims: str, *, kind: str = "int64") -> TensorSpec:
        """Every number from 0 to the length once, in any order."""
        return _indexed(dims, kind, Index("permutation"))

    @staticmethod
    def slots(dims: str, *, count: str, kind: str = "int64") -> TensorSpec:
        """Where each item goes among `count` slots, none twice; -1: nowhere."""
        return _indexed(dims, kind, Index("slots", {"count": count}))

    @staticmethod
    def mask(
        dims: str,
        *,
        patterns: str = "random causal late lone all",
        true_hides: bool = False,
        kind: str = "bool",
    ) -> TensorSpec:
        """Which places count, in these patterns by case or by row; `true_hides` turns it over.

        `rows` are whole rows of which nothing counts: name it only where that has a meaning.
        """
        made = Index("mask", {"true_hides": int(true_hides)}, patterns=tuple(patterns.split()))
        return _indexed(dims, kind, made)

    @staticmethod
    def out(dims: str, *, kind: str = "float") -> TensorSpec:
        """A destination: an argument that the kernel writes, and reads nothing from.

        The n-th one receives the n-th result. The reference is given None in its place.
        """
        return replace(tensor(dims, kind=kind), destination=True)

    @staticmethod
    def int(
        dims: str,
        *,
        high: str | int,
        low: int = 0,
        marker: int | None = None,
        all_marked: bool = False,
        kind: str = "int64",
    ) -> TensorSpec:
        """Integers in [low, high); `high` may be a dim."""
        made = tensor(dims, kind=kind, low=low, high=high)
        return replace(made, marker=marker, all_marked=all_marked)


def tensor(
    dims: str,
    *,
    kind: str = "float",
    low: int = 0,
    high: str | int = 2,
    axis: int = -1,
    stand_ins: Mapping[str, str] = _NOTHING,
    when: str = "",
) -> TensorSpec:
    """A tensor, by default of the tested dtype; `Tensor[dims]` with the finer points.

    Raises:
        UsageError: a dim is neither a name, a number, nor made of them by `+`, `*` and `cdiv`;
            or the kind is no dtype.
    """
    where = f'Tensor["{dims}"]'
    names = parse_dims(dims, where)
    if isinstance(high, str):
        check_dim(high, where)
    if kind != "float":
        torch_dtype(kind)
    return TensorSpec(
        names, kind=kind, low=low, high=high, axis=axis, stand_ins=stand_ins, when=when
    )


def _indexed(dims: str, kind: str, index: Index) -> TensorSpec:
    where = f'Tensor.{index.rule}("{dims}")'
    for size in index.sizes.values():
        if isinstance(size, str):
            check_dim(size, where)
    get_rule(index.rule).check_use(index, parse_dims(dims, where), where)
    return replace(tensor(dims, kind=kind), index=index)


__all__ = ["Scalar", "ScalarSpec", "Seed", "Size", "SizeSpec", "Tensor", "TensorSpec", "tensor"]
