"""CUDA's `libdevice` on the CPU.

Triton's own table in `triton.language.extra.cuda.libdevice` picks the symbol for the types of
the arguments and refuses types that have none, as on a GPU; the symbol is then computed here, in
float64 and rounded once. That is nearer the truth than the GPU, by a few units in the last place.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.extra import libdevice as stubs
from triton.language.extra.cuda import libdevice as table
from triton.runtime.interpreter import interpreter_semantic

from gatecert.lanes.interpreter.failures import LaneRefusal
from gatecert.lanes.interpreter.numerics import Array
from gatecert.lanes.interpreter.semantics import bind_builtin

_PREFIX = "__nv_"


def _by_torch(function: Callable[..., torch.Tensor]) -> Callable[..., Array]:
    def compute(*arrays: Array) -> Array:
        result: Array = function(*(torch.from_numpy(np.array(a)) for a in arrays)).numpy()
        return result

    return compute


def _round_half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_FLOAT: dict[str, Callable[..., Array]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "erf": _by_torch(torch.special.erf),
    "erfc": _by_torch(torch.special.erfc),
    "erfcinv": _by_torch(lambda x: torch.special.erfinv(1.0 - x)),
    "erfcx": _by_torch(torch.special.erfcx),
    "erfinv": _by_torch(torch.special.erfinv),
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fabs": np.abs,
    "fdim": lambda x, y: np.where(x <= y, 0.0, x - y),
    "fdivide": np.divide,
    "floor": np.floor,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "ldexp": np.ldexp,
    "lgamma": _by_torch(torch.special.gammaln),
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "nearbyint": np.rint,
    "normcdf": _by_torch(torch.special.ndtr),
    "normcdfinv": _by_torch(torch.special.ndtri),
    "pow": np.power,
    "powi": np.power,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "rint": np.rint,
    "round": _round_half_away,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "saturate": lambda x: np.fmin(np.fmax(x, 0.0), 1.0),
    "scalbn": np.ldexp,
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
"""By symbol, without `__nv_`, `fast_` and the `f` of float32: float64 in, float64 out."""

_ROUNDED: dict[str, Callable[..., Array]] = {
    **{f"{kind}add_rn": np.add for kind in "df"},
    **{f"{kind}sub_rn": np.subtract for kind in "df"},
    **{f"{kind}mul_rn": np.multiply for kind in "df"},
    **{f"{kind}div_rn": np.divide for kind in "df"},
    **{f"{kind}rcp_rn": np.reciprocal for kind in "df"},
    **{f"{kind}sqrt_rn": np.sqrt for kind in "df"},
    "frsqrt_rn": lambda x: 1.0 / np.sqrt(x),
}
"""Basic arithmetic to nearest even: exact when rounded from float64."""

_WHOLE: dict[str, Callable[..., Array]] = {
    "abs": np.abs,
    "llabs": np.abs,
    "finite": np.isfinite,
    "isfinited": np.isfinite,
    "isinf": np.isinf,
    "isinfd": np.isinf,
    "isnan": np.isnan,
    "isnand": np.isnan,
    "signbit": np.signbit,
    "signbitd": np.signbit,
    "llrint": np.rint,
    "llround": _round_half_away,
}
"""Functions whose result is an integer."""


def patch_libdevice() -> None:
    """Give every function of `libdevice` a body, also under names it was imported as."""
    bodies: dict[Callable[..., Any], Callable[..., Any]] = {}
    for name, member in list(vars(table).items()):
        if tl.core.is_builtin(member):
            bodies[member] = bind_builtin(member, interpreter_semantic)
            if hasattr(stubs, name):
                bodies[getattr(stubs, name)] = bodies[member]
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if type(value) is types.FunctionType and value in bodies:
                setattr(module, name, bodies[value])


def compute(symbol: str, arrays: list[Array], target: np.dtype[Any]) -> Array:
    """The value of a libdevice symbol.

    Raises:
        LaneRefusal: the function is not known here.
    """
    name = symbol.removeprefix(_PREFIX)
    function = _find(name)
    if function is None or not symbol.startswith(_PREFIX):
        raise LaneRefusal(f"{symbol} is not supported by the interpreter lane")
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    return np.asarray(function(*wide)).astype(target)


def _find(name: str) -> Callable[..., Array] | None:
    name = name.removeprefix("fast_")
    for known in (name, name.removesuffix("f")):
        for functions in (_FLOAT, _ROUNDED, _WHOLE):
            if known in functions:
                return functions[known]
    return None
