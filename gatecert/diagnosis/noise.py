"""Is a difference more than rounding? By the original's own error against the float64 reference,
and by what the oracle's tolerance allows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import torch

from gatecert.diagnosis.values import PlainValue, TensorValue, Value, contents_of
from gatecert.oracle.comparators.where_exact import judge_where_exact
from gatecert.oracle.expectation import Expected
from gatecert.oracle.tolerance import FP32_UNIT, RoundingInterval

_FACTOR = 8.0
"""A difference is more than rounding where it is so many times the original's largest error."""
_COMPARATOR = RoundingInterval()


class Difference(msgspec.Struct, frozen=True):
    """One call's results beside the original's."""

    other_bits: bool = False
    beyond_noise: bool = False
    largest: float | None = None
    error: float | None = None
    own_error: float | None = None


def difference(
    original: Sequence[Value], mutant: Sequence[Value], expected: Expected | None
) -> Difference:
    """How results differ; without an expectation the original's own values stand for it."""
    if _same(original, mutant):
        return Difference()
    if len(original) != len(mutant):
        return Difference(True, True)
    found = Difference(True)
    known = expected.outputs if expected is not None else ()
    for place, (one, other) in enumerate(zip(original, mutant, strict=True)):
        if not isinstance(one, TensorValue) or not isinstance(other, TensorValue):
            found = _worse(found, Difference(one != other, one != other))
            continue
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return Difference(True, True)
        if one.data == other.data:
            continue
        right, wrong = contents_of(one), contents_of(other)
        exact = None
        if place < len(known) and tuple(known[place].reference.shape) == one.shape:
            exact = torch.from_numpy(known[place].reference).double()
        found = _worse(found, _of_tensors(right, wrong, exact))
        if exact is not None and not found.beyond_noise:
            said = [judge_where_exact(_COMPARATOR, known[place], t) for t in (right, wrong)]
            if [judgement.passed for judgement in said] == [True, False]:
                found = msgspec.structs.replace(found, beyond_noise=True)
    return found


def _of_tensors(right: torch.Tensor, wrong: torch.Tensor, exact: torch.Tensor | None) -> Difference:
    """Of two tensors that differ in bits."""
    a, b = right.double(), wrong.double()
    if not torch.equal(a.isfinite(), b.isfinite()) or not _agree_where_not_finite(a, b):
        return Difference(True, True)
    if not a.numel():
        return Difference()
    finite = a.isfinite()
    a, b = a[finite], b[finite]
    if not a.numel():
        return Difference(True)
    largest = float((a - b).abs().max())
    if exact is None:
        size = float(a.abs().max())
        noise = size * (torch.finfo(right.dtype).eps if right.is_floating_point() else 0.0)
        return Difference(True, largest > _FACTOR * noise, largest)
    exact = exact[finite]
    own = float((a - exact).nan_to_num(0.0, 0.0, 0.0).abs().max())
    error = float((b - exact).nan_to_num(0.0, 0.0, 0.0).abs().max())
    floor = FP32_UNIT * float(exact.nan_to_num(0.0, 0.0, 0.0).abs().max())
    return Difference(True, largest > _FACTOR * max(own, floor), largest, error, own)


def _agree_where_not_finite(a: torch.Tensor, b: torch.Tensor) -> bool:
    odd = ~a.isfinite()
    return torch.equal(a[odd].nan_to_num(0.0, 1.0, -1.0), b[odd].nan_to_num(0.0, 1.0, -1.0))


def _worse(one: Difference, other: Difference) -> Difference:
    """Both in one, with the numbers of the larger difference."""
    first, second = sorted((one, other), key=lambda d: d.largest or 0.0, reverse=True)
    return msgspec.structs.replace(
        first if first.largest is not None else second,
        other_bits=one.other_bits or other.other_bits,
        beyond_noise=one.beyond_noise or other.beyond_noise,
    )


def _same(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return len(one) == len(other) and all(
        (a.shape, a.dtype, a.data) == (b.shape, b.dtype, b.data)
        if isinstance(a, TensorValue) and isinstance(b, TensorValue)
        else _plain(a) == _plain(b)
        for a, b in zip(one, other, strict=True)
    )


def _plain(value: Value) -> object:
    """A number's own text: NaN is what it is."""
    return repr(value.value) if isinstance(value, PlainValue) else value
