"""What a gate of the team's own read while it judged the original, besides what its table names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class GateReads(msgspec.Struct, frozen=True):
    """Files imported or opened that are no library's, and environment variables that the team's
    code asked for, each with a hash of what it held; "" where that was not looked at yet, and for
    a variable that is not set."""

    files: dict[str, str] = {}
    variables: dict[str, str] = {}

    def __or__(self, other: GateReads) -> GateReads:
        """All that either read."""
        return GateReads(_united(self.files, other.files), _united(self.variables, other.variables))


def unhashed(files: Iterable[str], variables: Iterable[str]) -> GateReads:
    """Names alone, in order."""
    return GateReads(dict.fromkeys(sorted(files), ""), dict.fromkeys(sorted(variables), ""))


def _united(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted({**first, **second}.items()))
