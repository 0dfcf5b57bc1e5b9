"""The certificate as JSON: stable key order, one document."""

from __future__ import annotations

import msgspec

from gatecert.certificate.records import Certificate
from gatecert.certificate.seal import sealed


def render_json(certificate: Certificate) -> str:
    """`certificate.json` with its hash, indented, ending in a newline."""
    body = msgspec.json.encode(sealed(certificate))
    return msgspec.json.format(body, indent=2).decode() + "\n"


def parse_json(text: str) -> Certificate:
    """Read `certificate.json` back.

    Raises:
        msgspec.DecodeError: the text is no certificate of this format.
    """
    return msgspec.json.decode(text, type=Certificate)
