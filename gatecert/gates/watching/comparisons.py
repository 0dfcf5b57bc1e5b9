"""What a call of a comparing function compares, and how closely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from gatecert.gates.wiring.allowances import default_tolerance

_PARAMETERS = {
    "torch.allclose": ("input", "other", "rtol", "atol"),
    "torch.isclose": ("input", "other", "rtol", "atol"),
    "torch.equal": ("input", "other"),
    "torch.testing.assert_close": ("actual", "expected"),
    "numpy.testing.assert_allclose": ("actual", "desired", "rtol", "atol"),
    "numpy.testing.assert_array_equal": ("actual", "desired"),
    "numpy.testing.assert_array_almost_equal": ("actual", "desired", "decimal"),
    "numpy.testing.assert_equal": ("actual", "desired"),
    "numpy.testing.assert_almost_equal": ("actual", "desired", "decimal"),
    "numpy.allclose": ("a", "b", "rtol", "atol"),
    "numpy.isclose": ("a", "b", "rtol", "atol"),
    "numpy.array_equal": ("a1", "a2"),
    "numpy.array_equiv": ("a1", "a2"),
    "math.isclose": ("a", "b"),
}
"""Names of leading parameters: the two sides first."""
_DECIMALS = {
    "numpy.testing.assert_array_almost_equal": 6,
    "numpy.testing.assert_almost_equal": 7,
}
_DEFAULTS = {
    "torch.allclose": (1e-8, 1e-5),
    "torch.isclose": (1e-8, 1e-5),
    "numpy.allclose": (1e-8, 1e-5),
    "numpy.isclose": (1e-8, 1e-5),
    "numpy.testing.assert_allclose": (0.0, 1e-7),
    "math.isclose": (0.0, 1e-9),
}
"""(atol, rtol) where a call names none."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a comparison, and the tolerance that applies."""

    values: tuple[Any, ...]
    atol: float | None = None
    rtol: float | None = None


def sides_of(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sides:
    """Read a call of a comparing function."""
    if name == "pytest.approx":
        return Sides(args[1:])
    parameters = _PARAMETERS[name]
    given = {**dict(zip(parameters, args, strict=False)), **kwargs}
    values = tuple(given[side] for side in parameters[:2] if side in given)
    if name == "torch.testing.assert_close":
        return _assert_close(values, given)
    if "decimal" in parameters:
        return Sides(values, 1.5 * 10.0 ** -int(given.get("decimal", _DECIMALS[name])), 0.0)
    if name in _DEFAULTS:
        atol, rtol = _DEFAULTS[name]
        atol = float(given.get("atol", given.get("abs_tol", atol)))
        return Sides(values, atol, float(given.get("rtol", given.get("rel_tol", rtol))))
    return Sides(values)


def _assert_close(values: tuple[Any, ...], given: Mapping[str, Any]) -> Sides:
    """Without a tolerance the dtypes choose it."""
    if given.get("atol") is not None and given.get("rtol") is not None:
        return Sides(values, float(given["atol"]), float(given["rtol"]))
    dtypes = [side.dtype for side in values if isinstance(side, torch.Tensor)]
    if len(dtypes) < 2:
        return Sides(values)
    atol, rtol = (max(found) for found in zip(*map(default_tolerance, dtypes), strict=True))
    return Sides(values, atol, rtol)
