"""A case: one concrete input, as a line of text that is its own description."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gatecert.errors import UsageError, did_you_mean
from gatecert.oracle.formats import FORMATS
from gatecert.oracle.given import Given, read_given, write_given
from gatecert.oracle.layouts import LAYOUTS, split_layout
from gatecert.oracle.values import RECIPES

_SHAPE = "operation/dtype/DIM=n,DIM=n/layout/recipe[~absent][:tensor=x,...][/scalar=x,...]/seed=n"


class Case(msgspec.Struct, frozen=True):
    """Dims, dtype, layout, value recipe, scalars and seed: all that makes the inputs.

    `dims` are in the order of the operation's first mention. In the layout `row_padded:b+c` the
    arguments b and c alone are so, and the others contiguous. Tensors in `given` hold those
    values, in the order of their indices, in place of the recipe's. Optional tensors in `absent`
    are left out: their names follow the recipe, as in `normal~bias`.
    """

    operation: str
    dims: tuple[tuple[str, int], ...]
    dtype: str
    layout: str = "contiguous"
    recipe: str = "normal"
    scalars: tuple[tuple[str, float], ...] = ()
    seed: int = 0
    given: Given = ()
    absent: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """`softmax/float16/B=3,N=129/row_padded/normal/seed=0`; `parse_case` reads it back."""
        dims = ",".join(f"{name}={size}" for name, size in self.dims)
        scalars = ",".join(f"{name}={value!r}" for name, value in self.scalars)
        left_out = "".join(f"~{name}" for name in self.absent)
        recipe = self.recipe + left_out + write_given(self.given)
        parts = [self.operation, self.dtype, dims, self.layout, recipe, scalars]
        return "/".join([*(part for part in parts if part), f"seed={self.seed}"])

    @property
    def sizes(self) -> dict[str, int]:
        """Dims by name."""
        return dict(self.dims)


def parse_case(text: str) -> Case:
    """Read a case id.

    Raises:
        UsageError: it is not of the form of an id, or names an unknown dtype, layout or recipe.
    """
    parts = text.strip().split("/")
    if len(parts) not in (6, 7) or not all(parts):
        raise UsageError(f"case {text!r} is not of the form {_SHAPE}")
    operation, dtype, dims, layout, recipe, *scalars, seed = parts
    _known(text, "dtype", dtype, FORMATS)
    _known(text, "layout", split_layout(layout)[0], LAYOUTS)
    if not re.fullmatch(r"\w+(:[A-Za-z_]\w*(\+[A-Za-z_]\w*)*)?", layout):
        raise UsageError(f"case {text!r}: layout {layout!r} is not of the form layout:name+name")
    recipe, *given = recipe.split(":")
    recipe, *absent = recipe.split("~")
    _known(text, "recipe", recipe, RECIPES)
    return Case(
        operation=operation,
        dims=tuple((name, _integer(text, name, size)) for name, size in _pairs(text, dims)),
        dtype=dtype,
        layout=layout,
        recipe=recipe,
        scalars=tuple(
            (name, _number(text, name, value))
            for part in scalars
            for name, value in _pairs(text, part)
        ),
        seed=_seed(text, seed),
        given=read_given(text, given),
        absent=tuple(absent),
    )


def _pairs(text: str, part: str) -> list[tuple[str, str]]:
    found = []
    for item in part.split(","):
        match = re.fullmatch(r"([A-Za-z_]\w*)=(\S+)", item)
        if match is None:
            raise UsageError(f"case {text!r}: {item!r} is not of the form name=value")
        found.append((match[1], match[2]))
    return found


def _integer(text: str, name: str, value: str) -> int:
    if not re.fullmatch(r"\d+", value):
        raise UsageError(f"case {text!r}: {name}={value} is not a whole number")
    return int(value)


def _number(text: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"case {text!r}: {name}={value} is not a number") from None


def _seed(text: str, part: str) -> int:
    name, _, value = part.partition("=")
    if name != "seed":
        raise UsageError(f"case {text!r}: the last part must be seed=n, not {part!r}")
    return _integer(text, "seed", value)


def _known(text: str, what: str, name: str, names: Iterable[str]) -> None:
    names = list(names)
    if name not in names:
        hint = did_you_mean(name, names, otherwise="it is one of")
        raise UsageError(f"case {text!r}: unknown {what} {name!r}; {hint}")
