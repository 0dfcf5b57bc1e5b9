"""Relations: what must hold between outputs for related inputs, whatever the right output is.

They are data on an operation; `oracle.metamorphic` makes checks of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_NONE: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scaling these tensors by a scales output `name` by a to the power `degrees[name]`.

    An output that is not named has degree 1. Where `additive` is set, the operation of a sum of
    such tensors is the sum of the operation of each: it is linear in them, taken together.
    `where` names scalars and the only values at which all this holds.
    """

    tensors: tuple[str, ...]
    where: Mapping[str, float] = field(default_factory=lambda: _NONE)
    degrees: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    additive: bool = False


@dataclass(frozen=True, slots=True)
class Relations:
    """The relations that hold for an operation, for all of its domain's ordinary inputs.

    `symmetric` names dims whose indices may change places in all tensors at once: outputs follow,
    or do not change where they lack the dim; indices into the dim are renamed. `independent`
    names dims of which each index may be taken alone. `padded` names dims that may be made
    longer, float tensors with this value: outputs keep their first part. A constant may be added
    to all the tensors in `shifted` without any change. See `Scaling` for `scalings`.
    """

    symmetric: str = ""
    independent: str = ""
    padded: Mapping[str, float] = field(default_factory=lambda: _NONE)
    shifted: tuple[str, ...] = ()
    scalings: tuple[Scaling, ...] = ()


NO_RELATIONS = Relations()


def homogeneous(*tensors: str, **degrees: int) -> Scaling:
    """Scaling the tensors by a > 0 scales every output by a, or by a to the degree given here."""
    return Scaling(tensors, degrees=MappingProxyType(degrees))


def additive(*tensors: str, where: Mapping[str, float] = _NONE) -> Scaling:
    """The operation is linear in these tensors, taken together."""
    return Scaling(tensors, MappingProxyType(dict(where)), additive=True)
