"""Tolerances as TOML, for a person to read and keep under version control."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from gatecert.calibration.records import Tolerances

_HEAD = """\
# Written by `gatecert calibrate`. Read every row (docs/calibrate.md says what to look for), then
# write into `reviewed` who did and when; until then no [oracle.NAME] takes this file.
"""


def render_tolerances(tolerances: Tolerances) -> str:
    """The file's text; `read_tolerances` reads it back equal."""
    table: dict[str, Any] = msgspec.to_builtins(tolerances)
    lists = {name: table.pop(name) for name in ("row", "refused")}
    parts = [_HEAD, *(f"{key} = {_value(value)}\n" for key, value in table.items())]
    for name, items in lists.items():
        for item in items:
            lines = [f"{key} = {_value(value)}\n" for key, value in item.items()]
            parts += [f"\n[[{name}]]\n", *lines]
    return "".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)
