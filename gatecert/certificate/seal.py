"""The certificate's hash of itself: whoever edits a figure by hand leaves a trace.

It is no signature. Anybody can compute it, so it tells an accident or a careless edit, and not
who wrote the file.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from gatecert.certificate.records import Certificate

_NOT_HASHED = ("sha256", "timings_s")
"""Itself, and what a clock says: equal figures have equal hashes."""


def sealed(certificate: Certificate) -> Certificate:
    """The certificate with its hash."""
    document = msgspec.json.decode(msgspec.json.encode(certificate))
    return msgspec.structs.replace(certificate, sha256=hash_of(document))


def hash_of(document: dict[str, Any]) -> str:
    """The hash of a certificate as JSON holds it, whatever its layout and order of keys."""
    body = {key: value for key, value in document.items() if key not in _NOT_HASHED}
    return hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()
