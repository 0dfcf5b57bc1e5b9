"""See what a gate does with tensors: comparisons of torch, and numbers that it reads out.

A gate that compares by hand, as in `(a - b).abs().max() < 1e-3`, calls no comparing function.
So every tensor remembers the two sides of the comparison it came from, and the operations since,
until a number or a truth value is read from it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from gatecert.gates.watching.functions import VALUES, WHOLE

COMPARING = {"allclose": "torch.allclose", "isclose": "torch.isclose", "equal": "torch.equal"}
"""Functions of torch that compare, methods of tensors included."""
_PAIRING = frozenset({
    "sub", "mul", "div", "eq", "ne", "isclose", "mse_loss", "l1_loss", "smooth_l1_loss",
    "huber_loss", "cosine_similarity", "dist", "dot", "vdot", "kl_div", "pairwise_distance",
    "maximum", "minimum",
})  # fmt: skip
_REDUCING = WHOLE | frozenset({
    "max", "min", "amax", "amin", "aminmax", "all", "any", "count_nonzero", "isnan", "isinf",
    "isfinite", "quantile", "median",
})  # fmt: skip
_SAME_VALUES = frozenset({
    "flatten", "reshape", "view", "detach", "cpu", "contiguous", "clone", "float", "double", "to",
    "squeeze", "unsqueeze",
})  # fmt: skip
_READING = frozenset({
    "item", "tolist", "numpy", "is_nonzero", "bool", "float", "int", "index", "array", "contains",
    "complex",
})  # fmt: skip
_ALL_VALUES = frozenset(("numpy", "tolist", "array"))
_SHOWING = frozenset(("repr", "format", "str"))
_BOUNDS = frozenset(("lt", "le", "gt", "ge"))
_SPELLINGS = {"rsub": "sub", "truediv": "div", "rdiv": "div", "rtruediv": "div", "rmul": "mul"}
_MOST_OPS = 12


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a tensor came from: the two sides that were compared, and the operations since.

    `bound` is the plain number that it was last held against.
    """

    ops: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    bound: float | None = None
    expected: weakref.ref[torch.Tensor] | None = None


class ReadsTensors(Protocol):
    """Takes what is seen."""

    @property
    def listening(self) -> bool:
        """False while nothing is to be noted."""
        ...

    def torch_compared(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], answer: Any
    ) -> None:
        """A comparing function of torch answered; None: it raised."""
        ...

    def number_read(self, trace: Trace | None) -> None:
        """A number, or all of them, left a tensor."""
        ...

    def tensor_shown(self) -> None:
        """Text was made of a tensor."""
        ...


class TensorReads(TorchFunctionMode):
    """Shows all uses of tensors inside to `watch`; changes nothing."""

    def __init__(self, watch: ReadsTensors) -> None:
        super().__init__()
        self._watch = watch
        self._traces: Any = WeakIdKeyDictionary()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function, and note what it was."""
        kwargs = kwargs or {}
        if not self._watch.listening:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "").strip("_")
        name = _SPELLINGS.get(name, name)
        try:
            answer = func(*args, **kwargs)
        except Exception:
            if name in COMPARING:
                self._watch.torch_compared(COMPARING[name], args, kwargs, None)
            raise
        if name != "get":  # of a property, as `Tensor.shape` is
            with contextlib.suppress(Exception):
                self._note(name, args, kwargs, answer)
        return answer

    def _note(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], answer: Any
    ) -> None:
        if name in COMPARING:
            self._watch.torch_compared(COMPARING[name], args, kwargs, answer)
        elif name in _READING:
            trace = self._traces.get(args[0])
            if name in _ALL_VALUES and args[0].numel() > 1:
                trace = trace or Trace()
                trace = replace(trace, ops=(*trace.ops, VALUES))
            self._watch.number_read(trace)
            return
        elif name in _SHOWING:
            self._watch.tensor_shown()
            return
        trace = self._trace(name, args, kwargs)
        if trace is not None:
            for tensor in _tensors(answer):
                self._traces[tensor] = trace

    def _trace(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Trace | None:
        sides = list(_tensors((args, tuple(kwargs.values()))))
        full = [side for side in sides if side.dim() and side.numel() > 1]
        if name in _PAIRING and len(full) == 2 == len(sides):
            return Trace(
                ops=(name,),
                shapes=tuple(tuple(side.shape) for side in full),
                dtypes=tuple(dtype_name(side.dtype) for side in full),
                expected=weakref.ref(full[1]),
            )
        known = [self._traces[side] for side in sides if side in self._traces]
        if not known:
            return Trace(ops=(name,)) if name in _REDUCING and sides else None
        main: Trace = next((trace for trace in known if trace.shapes), known[0])
        if name in _SAME_VALUES:
            return main
        ops = dict.fromkeys(op for trace in known for op in trace.ops)
        ops[name] = None
        bound = main.bound
        if name in _BOUNDS and len(args) == 2 and isinstance(args[1], int | float):
            bound = float(args[1])
        return replace(main, ops=tuple(ops)[:_MOST_OPS], bound=bound)


def dtype_name(dtype: Any) -> str:
    """`float32`, of torch and numpy alike."""
    return str(dtype).removeprefix("torch.")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)
