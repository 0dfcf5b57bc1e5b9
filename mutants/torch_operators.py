"""Functions that were made operators of torch, by `torch.library.custom_op` or `triton_op`.

They are told by where their class comes from: torch may not be imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_operator(value: Any) -> bool:
    """Whether the value is such an operator, whatever its name in a module."""
    return type(value).__module__ == "torch._library.custom_ops"


def decorated(operator: Any) -> Any:
    """The function that was decorated; `triton_op` puts one of its own around it."""
    function = operator._init_fn
    if getattr(function, "__module__", None) != "torch._library.triton":
        return function
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    return held[0] if len(held) == 1 else function


def substitute(operator: Any, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Let the operator run on each device what `make` makes of that device's own function, by
    whatever name it is called."""
    for device, function in list(operator._backend_fns.items()):
        operator.register_kernel(device)(_as_torch_allows(operator, make(function)))


def _as_torch_allows(operator: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator may return an argument only where it is declared to: elsewhere a copy."""
    if getattr(operator, "_is_inplace", False) or getattr(operator, "_is_out", False):
        return function
    from torch import Tensor
    from torch.utils._pytree import tree_map_only

    def run(*args: Any, **kwargs: Any) -> Any:
        given = {id(arg) for arg in (*args, *kwargs.values())}
        result = function(*args, **kwargs)
        return tree_map_only(Tensor, lambda t: t.clone() if id(t) in given else t, result)

    return run
