"""Claims about records between processes: what arrives is what was sent."""

from __future__ import annotations

import math

import msgspec
import pytest

from gatecert.encoding import decode, encode
from gatecert.gates.evidence import Compared, Evidence
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.sandbox.protocol import Judged, decode_event


def test_an_infinite_tolerance_arrives_as_one() -> None:
    compared = Compared("torch.allclose", True, atol=math.inf, wrong_by=math.inf, used=-math.inf)
    evidence = Evidence(compared=(compared,))
    sent = Judged(Verdict("m", "tests", GateOutcome.ACCEPTED, evidence=evidence), b"\x00\xff")
    assert decode_event(encode(sent)) == sent


def test_nan_and_any_text_arrive_on_one_line() -> None:
    line = encode([math.nan, "a\nb é"])
    assert b"\n" not in line
    number, text = decode(line, tuple[float, str])
    assert math.isnan(number)
    assert text == "a\nb é"


def test_what_is_cut_short_is_a_decode_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(b'{"candidate":', Verdict)
