"""What the code comparison says to its servers, and the frames it says it in."""

from __future__ import annotations

import enum
from typing import BinaryIO

import msgspec

from gatecert.mutants.records import CodeDepth, Signature


class Stop(str, enum.Enum):
    """When a child may leave the remaining signatures alone."""

    NEVER = "never"
    """It compiles them all."""
    FIRST_SUCCESS = "first_success"
    """After the first one that compiles."""
    FIRST_DIFFERENCE = "first_difference"
    """After the first one whose code is not the expected."""


class CompileRequest(msgspec.Struct, frozen=True):
    """Import the overlaid modules and compile kernels for some signatures, in order.

    `expected` holds a hash for each signature, or is empty. `preload` names modules that the
    server may import once for all its children.
    """

    files: dict[str, str]
    signatures: tuple[Signature, ...]
    stop: Stop
    timeout_s: float
    depth: CodeDepth
    expected: tuple[str, ...] = ()
    import_paths: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()


class CompileReply(msgspec.Struct, frozen=True):
    """Hashes for the first signatures of a request; `FAILED` where it did not compile.

    `error` is the first compiler message. `broken` is set where nothing can be concluded: the
    compiler died or hung, or the environment failed. `cpu_s` is the time on a core, that of the
    assembler included; `seconds` is what the clock says.
    """

    hashes: tuple[str, ...] = ()
    error: str = ""
    broken: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0


FAILED = "-"
"""Stands for the hash of code that does not compile."""

_LENGTH_BYTES = 4


def write_frame(stream: BinaryIO, message: bytes) -> None:
    """Write a message with its length before it (not JSON lines: floats may be infinite)."""
    stream.write(len(message).to_bytes(_LENGTH_BYTES, "big") + message)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next message, or None where the stream ends first."""
    head = stream.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        return None
    size = int.from_bytes(head, "big")
    body = stream.read(size)
    return body if len(body) == size else None
