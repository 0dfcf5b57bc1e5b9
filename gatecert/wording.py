"""Numbers and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def times(number: int) -> str:
    """`once`, `12 times`."""
    return "once" if number == 1 else f"{number} times"


def count(number: int, what: str) -> str:
    """`1 test`, `3 tests`, `2 launches`."""
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('ch') else 's'}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names one by one, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
