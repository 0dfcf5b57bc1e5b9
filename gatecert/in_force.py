"""A value in force in the whole process. Imports no Triton.

A `ContextVar` would be missed by whoever starts a thread or a fresh context: what a gate launches
there is as much its doing as the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class InForce(Generic[Value]):
    """`value` is the one in force, for every thread and context."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    @contextlib.contextmanager
    def set(self, value: Value) -> Iterator[None]:
        """In force inside; those who nest leave in the reverse order of entering."""
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before
