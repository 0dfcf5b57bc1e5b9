"""Does what an operation declares fit its schema?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gatecert.errors import UsageError
from gatecert.oracle.dims import names_in
from gatecert.oracle.exact import Kind
from gatecert.oracle.ranges import check_ranges
from gatecert.oracle.values import RECIPES

if TYPE_CHECKING:
    from gatecert.oracle.schema import Operation


def check_declarations(
    made: Operation, reduced: Sequence[str], derived: Sequence[str] = ()
) -> None:
    """Refuse a dim, recipe, tensor, output or scalar that the operation has not.

    A derived dim cannot be drawn, cut or reduced by itself: name those that it follows from.

    Raises:
        UsageError: it names what is wrong and what there is.
    """
    _check_exact(made)
    _check_relations(made)
    for what, dims in (
        ("reduces", [name for dim in reduced for name in names_in(dim)]),
        ("tiled", made.tiled),
        ("sizes", made.sizes),
        ("empty", made.empty),
    ):
        for dim in dims:
            if dim in derived:
                raise UsageError(
                    f"operation {made.name!r}: {what} names dim {dim!r}, which is derived; name "
                    "the dims that it follows from"
                )
            if dim not in made.dims:
                raise UsageError(
                    f"operation {made.name!r}: {what} names dim {dim!r}; "
                    f"its dims are {', '.join(made.dims)}"
                )
    for recipe in made.recipes:
        if recipe not in RECIPES:
            raise UsageError(f"operation {made.name!r}: unknown recipe {recipe!r}")
    check_ranges(made)
    _check_tensors(made)
    names = [spec.name for spec in made.tensors]
    for argument in made.in_place:
        if argument not in names:
            raise UsageError(f"operation {made.name!r}: no tensor {argument!r} to be in place")


def _check_tensors(made: Operation) -> None:
    """Index rules name index tensors of the same operation, results what they depend on."""
    plain = {s.name for s in made.tensors if s.index is not None and not s.index.tensors}
    for spec in made.tensors:
        for other in spec.index.tensors.values() if spec.index else ():
            if other not in plain:
                raise UsageError(
                    f"operation {made.name!r}: argument {spec.name!r} goes by {other!r}, which is "
                    f"no index tensor of its own; it may be {', '.join(sorted(plain)) or 'none'}"
                )
        if spec.optional and (spec.destination or spec.name in made.in_place):
            raise UsageError(
                f"operation {made.name!r}: argument {spec.name!r} is written; it cannot be left out"
            )
        if spec.when:
            raise UsageError(
                f"operation {made.name!r}: `when` is for results; write argument {spec.name!r} as "
                'Tensor["..."] | None'
            )
    known = [*made.optional, *(spec.name for spec in made.scalars)]
    for spec in made.outputs:
        if spec.when and spec.when not in known:
            raise UsageError(
                f"operation {made.name!r}: result {spec.name!r} is there when {spec.when!r} is, "
                f"which is neither an optional argument nor a scalar; there is "
                f"{', '.join(known) or 'none'}"
            )
        if spec.optional and not spec.when:
            raise UsageError(
                f"operation {made.name!r}: result {spec.name!r} may be None; say of which argument "
                'that depends: tensor("...", when="argument") | None'
            )
    if made.destinations and made.in_place:
        raise UsageError(
            f"operation {made.name!r} has destinations and in_place; results go either way"
        )
    if made.destinations and any(spec.when for spec in made.outputs):
        raise UsageError(
            f"operation {made.name!r}: results that go to destinations are always there"
        )


def _check_exact(made: Operation) -> None:
    if made.exact is None:
        return
    if made.exact.kind is Kind.LINEAR and made.shadow is None:
        raise UsageError(
            f"operation {made.name!r}: a linear operation needs a shadow, the sum of the "
            "magnitudes of its terms: it says up to where sums are exact"
        )
    for what, named, known in (
        ("output", made.exact.outputs, [spec.name for spec in made.outputs]),
        ("tensor", made.exact.tensors, [spec.name for spec in made.tensors]),
        ("scalar", made.exact.scalars, [spec.name for spec in made.scalars]),
    ):
        for name in named:
            if name not in known:
                raise UsageError(
                    f"operation {made.name!r}: exact names {what} {name!r}; "
                    f"there is {', '.join(known) or 'none'}"
                )


def _check_relations(made: Operation) -> None:
    relations = made.relations
    whole = {dim for spec in (*made.tensors, *made.outputs) for dim in spec.dims}
    scaled = [tensor for scaling in relations.scalings for tensor in scaling.tensors]
    resized = [*relations.independent.split(), *relations.padded]
    for what, named, known in (
        ("dim", [*relations.symmetric.split(), *resized], [d for d in made.dims if d in whole]),
        ("dim", resized, [dim for dim in made.dims if dim not in made.sizes]),
        ("tensor", [*relations.shifted, *scaled], [s.name for s in made.tensors if s.is_float]),
    ):
        for name in named:
            if name not in known:
                raise UsageError(
                    f"operation {made.name!r}: relations name {what} {name!r}, which they cannot; "
                    f"it may be one of {', '.join(known) or 'none'}"
                )
