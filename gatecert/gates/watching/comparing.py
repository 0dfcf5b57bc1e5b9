"""Functions that compare, and others by which a gate gives itself away, replaced by ones that
do the same and tell."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import logging
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from types import FrameType, ModuleType
from typing import Any, Protocol

import numpy as np
import torch

from gatecert.gates.watching.functions import ASSERTING, WHOLE
from gatecert.sandbox.imports import is_users

_RETURNING = (
    *((np, "numpy", name) for name in ("allclose", "isclose", "array_equal", "array_equiv")),
    (math, "math", "isclose"),
)
_SPEAKS_OF_A_MISMATCH = re.compile(
    r"\b(warn(ing)?|mismatch\w*|not close|fail(ed|ure|s)?|differ(s|ent)?|wrong|incorrect|"
    r"exceed(s|ed)?|tolerance)\b",
    re.IGNORECASE,
)


_A_FRACTION = re.compile(r"\d\.\d")


class Notes(Protocol):
    """Takes what replaced functions tell."""

    @property
    def listening(self) -> bool:
        """False while nothing is to be noted."""
        ...

    def compared(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], passed: bool
    ) -> None:
        """A comparing function answered."""
        ...

    def comparing(self) -> contextlib.AbstractContextManager[None]:
        """What is compared inside is part of one comparison."""
        ...

    def array_reduced(self, name: str) -> None:
        """One number was made of an array of numpy's."""
        ...

    def array_mended(self, name: str, array: Any, answer: Any, elements: int) -> None:
        """A function of numpy replaced elements of an array for what they were worth."""
        ...

    def warned(self, message: str) -> None:
        """The gate's code warned."""
        ...

    def tensor_shown(self) -> None:
        """Text was made of a tensor or of a number."""
        ...

    def assertion_failed(self) -> None:
        """An `assert` of the gate failed."""
        ...

    def text_captured(self) -> None:
        """The gate reads printed text."""
        ...

    def zipped(self, place: str, lengths: tuple[int, ...]) -> None:
        """The gate's code zipped lists of unequal lengths."""
        ...

    def imported(self, module: ModuleType) -> None:
        """A module was executed."""
        ...


def replaced(notes: Notes) -> contextlib.ExitStack:
    """Replace them all; closing the stack puts everything back."""
    stack = contextlib.ExitStack()

    def put(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        if not hasattr(owner, name):
            return
        own = name in vars(owner)
        before = vars(owner)[name] if own else getattr(owner, name)
        stack.callback(*(setattr, owner, name, before) if own else (delattr, owner, name))
        setattr(owner, name, make(before))

    for name in ASSERTING:
        module, _, function = name.rpartition(".")
        owner = torch.testing if module == "torch.testing" else np.testing
        put(owner, function, partial(_comparing, notes, name))
    for owner, prefix, function in _RETURNING:
        put(owner, function, partial(_comparing, notes, f"{prefix}.{function}"))
    for function in sorted(WHOLE):
        put(np, function, partial(_reducing, notes, function))
    put(np.linalg, "norm", partial(_reducing, notes, "norm"))
    put(np, "nan_to_num", partial(_mending, notes, "nan_to_num"))
    for kind in _approximations():
        put(kind, "__eq__", partial(_comparing, notes, "pytest.approx"))
    put(warnings, "warn", partial(_warning, notes))
    put(logging.Logger, "callHandlers", partial(_logging, notes))
    put(builtins, "print", partial(_printing, notes))
    put(builtins, "zip", partial(_zipping, notes))
    put(contextlib.redirect_stdout, "__enter__", partial(_capturing, notes))
    if (capture := sys.modules.get("_pytest.capture")) is not None:
        put(capture.CaptureFixture, "readouterr", partial(_capturing, notes))
    if (doctest := sys.modules.get("doctest")) is not None:
        put(doctest.OutputChecker, "check_output", partial(_capturing, notes))
    put(SourceFileLoader, "exec_module", partial(_importing, notes))
    if (rewrite := sys.modules.get("_pytest.assertion.rewrite")) is not None:
        hook = rewrite.AssertionRewritingHook
        put(hook, "exec_module", partial(_importing, notes))
        put(rewrite, "_format_explanation", partial(_failing, notes))
    return stack


def _comparing(notes: Notes, name: str, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def compare(*args: Any, **kwargs: Any) -> Any:
        if not notes.listening:
            return before(*args, **kwargs)
        passed = False
        try:
            with notes.comparing():
                answer = before(*args, **kwargs)
            # Asserting functions return None; others a truth value, or an array of them.
            passed = answer is None or bool(np.all(answer))
        finally:
            notes.compared(name, args, kwargs, passed)
        return answer

    return compare


def _reducing(notes: Notes, name: str, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def reduce(*args: Any, **kwargs: Any) -> Any:
        answer = before(*args, **kwargs)
        if notes.listening and np.ndim(answer) == 0 and _by_gate(sys._getframe(1)):
            notes.array_reduced(name)
        return answer

    return reduce


def _mending(notes: Notes, name: str, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def mend(x: Any, *args: Any, **kwargs: Any) -> Any:
        elements = int((~np.isfinite(x)).sum()) if isinstance(x, np.ndarray) else 0
        answer = before(x, *args, **kwargs)
        if notes.listening and isinstance(x, np.ndarray) and _by_gate(sys._getframe(1)):
            notes.array_mended(name, x, answer, elements)
        return answer

    return mend


def _warning(notes: Notes, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def warn(
        message: Any, category: Any = None, stacklevel: int = 1, *rest: Any, **more: Any
    ) -> Any:
        if notes.listening and _by_gate(sys._getframe(1)):
            notes.warned(str(message))
        # One frame more lies between the caller and the original.
        return before(message, category, stacklevel + 1, *rest, **more)

    return warn


def _logging(notes: Notes, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> Any:
        if notes.listening and record.levelno >= logging.WARNING and is_users(record.pathname):
            notes.warned(record.getMessage())
        return before(self, record)

    return call_handlers


def _printing(notes: Notes, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def show(*values: Any, **how: Any) -> Any:
        if notes.listening and _by_gate(sys._getframe(1)):
            line = " ".join(value for value in values if isinstance(value, str))
            if _SPEAKS_OF_A_MISMATCH.search(line):
                notes.warned(line)
            if _A_FRACTION.search(line) or any(isinstance(value, float) for value in values):
                notes.tensor_shown()
            if isinstance(how.get("file") or sys.stdout, io.StringIO):
                notes.text_captured()
        return before(*values, **how)

    return show


def _capturing(notes: Notes, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def capture(*args: Any, **kwargs: Any) -> Any:
        if notes.listening:
            notes.text_captured()
        return before(*args, **kwargs)

    return capture


def _failing(notes: Notes, before: Callable[..., Any]) -> Callable[..., Any]:
    """Of a function by which a rewritten `assert` words its failure."""

    @functools.wraps(before)
    def explain(*args: Any, **kwargs: Any) -> Any:
        if notes.listening:
            notes.assertion_failed()
        return before(*args, **kwargs)

    return explain


def _importing(notes: Notes, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def exec_module(self: Any, module: ModuleType) -> Any:
        answer = before(self, module)
        notes.imported(module)
        return answer

    return exec_module


def _zipping(notes: Notes, before: Any) -> Any:
    class Meta(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, before)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, before)

    class Zip(metaclass=Meta):
        def __new__(cls, *lists: Any, **how: Any) -> Any:
            if notes.listening and len(lists) > 1 and not how.get("strict"):
                frame = sys._getframe(1)
                with contextlib.suppress(Exception), notes.comparing():
                    lengths = _unequal_lengths(lists)
                    if lengths and _by_gate(frame):
                        name = frame.f_code.co_filename.rpartition("/")[2]
                        notes.zipped(f"{name}:{frame.f_lineno}", lengths)
            return before(*lists, **how)

    Zip.__name__, Zip.__qualname__, Zip.__doc__ = "zip", "zip", before.__doc__
    Zip.__module__ = "builtins"
    return Zip


def _unequal_lengths(lists: tuple[Any, ...]) -> tuple[int, ...]:
    """Lengths of the lists of numbers and tensors among these; () if all are alike, or are parts
    of one list, as in `zip(sums, sums[1:])`."""
    holders = [part for part in lists if _holds_values(part)]
    lengths = tuple(len(part) for part in holders)
    if len(set(lengths)) < 2 or _are_parts(holders):
        return ()
    return lengths


def _are_parts(holders: Sequence[Any]) -> bool:
    """Are the shorter lists runs of the longest one's items, or of equal numbers, some of them
    from a later place on?"""
    if not all(isinstance(part, list | tuple | torch.Tensor | np.ndarray) for part in holders):
        return False
    *shorter, longest = sorted(map(_identities, holders), key=len)
    if all(_is_run(part, longest) for part in shorter):
        return True
    if not all(isinstance(part, list) and type(part[0]) is float for part in holders):
        return False
    *shorter, longest = sorted(holders, key=len)
    later = [longest[: len(part)] != part for part in shorter]
    return any(later) and all(_is_run(part, longest) for part in shorter)


def _identities(part: Any) -> Sequence[int]:
    """A number for every item: where it lies, of a tensor's or an array's."""
    if isinstance(part, torch.Tensor):
        start, step = part.data_ptr(), part.stride(0) * part.element_size()
    elif isinstance(part, np.ndarray):
        start, step = part.ctypes.data, part.strides[0]
    else:
        return [id(item) for item in part]
    return [start + number * step for number in range(len(part))]


def _is_run(part: Sequence[Any], longest: Sequence[Any]) -> bool:
    starts = range(len(longest) - len(part) + 1) if part else ()
    return any(longest[n] == part[0] and longest[n : n + len(part)] == part for n in starts)


def _holds_values(part: Any) -> bool:
    if isinstance(part, torch.Tensor | np.ndarray):
        return part.ndim > 0
    if not isinstance(part, list | tuple | type({}.values()) | type({}.items())):
        return False
    first: Any = next(iter(part), None)
    if isinstance(first, tuple | list) and first:
        first = first[-1]
    return first is None or isinstance(first, torch.Tensor | np.ndarray | float)


def _by_gate(frame: FrameType | None) -> bool:
    """Is it code of the gate or under test, rather than of a library?"""
    return frame is not None and _is_users(frame.f_code.co_filename)


@functools.lru_cache(maxsize=1024)
def _is_users(path: str) -> bool:
    return is_users(path)


def _approximations() -> Iterator[type]:
    """The classes of what `pytest.approx` returns."""
    pytest = sys.modules.get("pytest")
    if pytest is None:
        return
    kinds = [
        kind
        for kind in type(pytest.approx(1.0)).__mro__
        if "pytest" in kind.__module__ and "__eq__" in vars(kind)
    ]
    for kind in kinds:  # grows on the way
        yield kind
        below: list[type] = kind.__subclasses__()
        kinds += [one for one in below if "__eq__" in vars(one) and one not in kinds]
