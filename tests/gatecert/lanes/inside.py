"""Run a test in a process where the interpreter is on, and nothing was compiled before."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def inside_lane(test: Callable[..., None]) -> Callable[..., None]:
    """The test, run in the lane's process; arguments travel there by pickle."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        _worker().submit(_run, test.__module__, test.__qualname__, args, kwargs).result()

    return run


@functools.cache
def _worker() -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=_activate)


def _activate() -> None:
    from gatecert.lanes import interpreter

    interpreter.activate()


def _run(module: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    test = getattr(importlib.import_module(module), name)
    test.__wrapped__(*args, **kwargs)
