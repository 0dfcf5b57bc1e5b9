"""What a gate of the team's own read while it judged, besides what its table names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class GateReads(msgspec.Struct, frozen=True):
    """Files imported or opened that are no library's, environment variables that the team's code
    asked for, folders whose names it read, and paths that it looked for. Each has a mark of what
    was there: hashes of content, value and names, the kind of a path; "" where there was nothing,
    or nobody has looked yet."""

    files: dict[str, str] = {}
    variables: dict[str, str] = {}
    folders: dict[str, str] = {}
    sought: dict[str, str] = {}

    def __or__(self, other: GateReads) -> GateReads:
        """All that either read."""
        return GateReads(*(_united(getattr(self, kind), getattr(other, kind)) for kind in KINDS))

    def beyond(self, other: GateReads) -> GateReads:
        """What was not read by the other: of a path that is sought its content says more."""
        known = GateReads(
            other.files, other.variables, other.folders, {**other.sought, **other.files}
        )
        return GateReads(*(_without(getattr(self, kind), getattr(known, kind)) for kind in KINDS))

    def __bool__(self) -> bool:
        return any(getattr(self, kind) for kind in KINDS)


KINDS = GateReads.__struct_fields__


def unhashed(
    files: Iterable[str],
    variables: Iterable[str],
    folders: Iterable[str] = (),
    sought: Iterable[str] = (),
) -> GateReads:
    """Names alone, in order."""
    kinds = (files, variables, folders, sought)
    return GateReads(*(dict.fromkeys(sorted(names), "") for names in kinds))


def _united(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted({**first, **second}.items()))


def _without(names: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    return {name: mark for name, mark in names.items() if name not in others}
