"""Records as one line of JSON between gatecert's own processes, infinities and NaN as they are.

msgspec's own JSON makes null of those: an infinite tolerance would arrive as none.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


def encode(record: Any) -> bytes:
    """The record in UTF-8, without a line end."""
    return json.dumps(
        msgspec.to_builtins(record), ensure_ascii=False, separators=(",", ":")
    ).encode()


def decode(text: bytes, kind: Any) -> Any:
    """A record of that type back.

    Raises:
        msgspec.DecodeError: it is no JSON, or of another type.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None
    return msgspec.convert(document, kind)
