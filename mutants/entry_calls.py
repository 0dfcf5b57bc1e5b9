"""Calls of a subject's entry, shown to whoever watches them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, Protocol

_MARK = "_gatecert_shows_its_calls"


class EntryObserver(Protocol):
    """Sees calls of the entry; it must leave the arguments as they are."""

    def entering(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A call begins."""
        ...

    def left(self, result: Any, error: BaseException | None) -> None:
        """The innermost call that began and has not ended ends, by `error` if it raised."""
        ...


_observers: tuple[tuple[EntryObserver, int | None], ...] = ()
"""Those in force in whatever context, each with the thread that it sees; None: it sees all."""


@contextlib.contextmanager
def entry_observed(observer: EntryObserver, *, all_threads: bool = False) -> Iterator[None]:
    """Show every call of an entry that this thread makes inside to `observer`, or those of all
    threads."""
    global _observers
    before = _observers
    _observers = (*before, (observer, None if all_threads else threading.get_ident()))
    try:
        yield
    finally:
        _observers = before


def showing_calls(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, showing its calls; in all else as it was."""

    @functools.wraps(function)
    def shown(*args: Any, **kwargs: Any) -> Any:
        here = (None, threading.get_ident())
        observers = [observer for observer, thread in _observers if thread in here]
        for observer in observers:
            observer.entering(args, kwargs)
        result: Any = None
        raised: BaseException | None = None
        try:
            result = function(*args, **kwargs)
            return result
        except BaseException as error:
            raised = error
            raise
        finally:
            for observer in reversed(observers):
                observer.left(result, raised)
            del result, raised  # an error holds its frames, and they what they hold

    setattr(shown, _MARK, True)
    return shown


def show_entry(module: str, path: str) -> bool:
    """Let an entry of an imported module show its calls, where it is defined and under all its
    names there and in `module`. True if it does so from now on or did already.

    Only plain functions can be replaced without anybody's noticing: of other entries nothing is
    seen.
    """
    *owners, last = path.split(".")
    owner: Any = sys.modules[module]
    for name in owners:
        owner = getattr(owner, name, None)
    found = inspect.getattr_static(owner, last, None)
    function = found.__func__ if isinstance(found, staticmethod) else found
    if not isinstance(function, FunctionType):
        return False
    if hasattr(function, _MARK):
        return True
    shown = showing_calls(function)
    setattr(owner, last, staticmethod(shown) if isinstance(found, staticmethod) else shown)
    if not owners:
        for name in {module, function.__module__} & set(sys.modules):
            namespace = vars(sys.modules[name])
            for alias in [key for key, value in namespace.items() if value is function]:
                namespace[alias] = shown
    return True
