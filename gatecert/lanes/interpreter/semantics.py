"""Bind Triton's builtins to the interpreter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def bind_builtin(member: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    """The builtin, callable as kernels call it: without `_semantic`."""
    function = inspect.unwrap(member)

    @functools.wraps(function)
    def builtin(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic
        return function(*args, **kwargs)

    return builtin
