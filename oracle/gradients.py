"""The gradient of an operation as an operation of its own.

    softmax_backward = grad_of(softmax, wrt="x")        # called as softmax_backward(dy, x)

Its reference is autograd in float64. Upstream gradients are drawn as ordinary numbers of both
signs, never all ones: a kernel that leaves them out, or sums over them, agrees for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.oracle.declarations import check_declarations
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Operation, Reference
from gatecert.oracle.specs import TensorSpec

_UPSTREAM = MappingProxyType({"*": "normal"})


def grad_of(
    forward: Operation,
    *,
    wrt: str | Sequence[str],
    name: str | None = None,
    second: Reference | None = None,
    shadow: Reference | None = None,
) -> Operation:
    """The gradients of `forward` with respect to the inputs in `wrt`.

    It takes one upstream gradient per result (`dy` of a lone one, `d` and the result's name of
    several), then the inputs of `forward`; its results are `d` and the input's name. One with
    respect to an optional input is there where that is given. `second` and `shadow` as in
    `operation`. It is linear in the upstream gradients, and held to that.

    Raises:
        UsageError: an input in `wrt` is no floating-point tensor, or a result depends on an
            argument or is an integer, so that there is no gradient of it.
    """
    label = name or f"{forward.name}_backward"
    names = tuple(wrt.split() if isinstance(wrt, str) else wrt)
    inputs = [spec for spec in forward.inputs if not getattr(spec, "destination", False)]
    able = {s.name: s for s in inputs if isinstance(s, TensorSpec) and s.is_float}
    for one in names or ("",):
        if one not in able:
            raise UsageError(
                f"operation {label!r}: no gradient with respect to {one!r}; there is "
                f"{', '.join(able) or 'none'}"
            )
    for result in forward.outputs:
        if result.when or not result.is_float:
            raise UsageError(
                f"operation {label!r}: result {result.name!r} of {forward.name} is "
                f"{'there in some cases only' if result.when else 'no float'}; declare the "
                "gradient as an operation of its own"
            )
    lone = len(forward.outputs) == 1
    upstream = tuple(
        replace(spec, name="dy" if lone else f"d{spec.name}", stand_ins=_UPSTREAM)
        for spec in forward.outputs
    )
    results = tuple(
        TensorSpec(
            able[one].dims, f"d{one}", able[one].kind, when=one if able[one].optional else ""
        )
        for one in names
    )
    made = replace(
        forward,
        name=label,
        inputs=(*upstream, *inputs),
        outputs=results,
        reference=_by_autograd(forward, names, len(upstream)),
        second=second,
        shadow=shadow,
        mid_shadow=None,
        exact=None,
        relations=Relations(scalings=(additive(*(spec.name for spec in upstream)),)),
        in_place=(),
        empty=(),
        summary=f"Gradients of {forward.name} with respect to {', '.join(names)}.",
    )
    check_declarations(made, ())
    return made


def _by_autograd(forward: Operation, names: tuple[str, ...], count: int) -> Reference:
    places = [
        number
        for number, spec in enumerate(s for s in forward.tensors if not s.destination)
        if spec.name in names
    ]
    order = [spec.name for spec in forward.tensors if spec.name in names]

    def gradients(*tensors: Any, **scalars: Any) -> Any:
        upstream, given = tensors[:count], list(tensors[count:])
        for place in places:
            if given[place] is not None:
                given[place] = given[place].detach().requires_grad_()
        leaves = [given[place] for place in places]
        there = [leaf for leaf in leaves if leaf is not None]
        waiting = iter(given)
        whole = [None if spec.destination else next(waiting) for spec in forward.tensors]
        y = forward.reference(*whole, **scalars)
        results = y if isinstance(y, tuple) else (y,)
        found = iter(_pull_back(results, there, upstream))
        by_name = dict(
            zip(order, (None if leaf is None else next(found) for leaf in leaves), strict=True)
        )
        for one, leaf in zip(order, leaves, strict=True):
            if leaf is not None and by_name[one] is None:
                raise EnvironmentFailure(
                    f"no result of {forward.name} depends on {one!r} in autograd's eyes, so there "
                    "is no gradient of it; is it detached, rounded or compared in the reference?"
                )
        ordered = tuple(by_name[one] for one in names)
        return ordered if len(ordered) > 1 else ordered[0]

    return gradients


def _pull_back(
    results: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor], upstream: Sequence[Any]
) -> Sequence[torch.Tensor | None]:
    """A gradient for each leaf; None where no result depends on it."""
    pairs = [pair for pair in zip(results, upstream, strict=True) if pair[0].requires_grad]
    if not pairs:
        return [None] * len(leaves)
    ends, seeds = zip(*pairs, strict=True)
    return torch.autograd.grad(ends, leaves, seeds, allow_unused=True)


__all__ = ["grad_of"]
