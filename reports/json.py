"""The certificate as JSON: stable key order, one document."""

from __future__ import annotations

import msgspec

from gatecert.certificate.records import Certificate


def render_json(certificate: Certificate) -> str:
    """`certificate.json`, indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(certificate), indent=2).decode() + "\n"


def parse_json(text: str) -> Certificate:
    """Read `certificate.json` back.

    Raises:
        msgspec.DecodeError: the text is no certificate of this format.
    """
    return msgspec.json.decode(text, type=Certificate)
