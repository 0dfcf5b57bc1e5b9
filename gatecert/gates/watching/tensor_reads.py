"""See what a gate does with tensors: comparisons of torch, and numbers that it reads out.

A gate that compares by hand, as in `(a - b).abs().max() < 1e-3`, calls no comparing function.
So every tensor remembers the two sides of the comparison it came from, and the operations since,
until a number or a truth value is read from it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from gatecert.gates.watching.functions import VALUES, WHOLE
from gatecert.gates.watching.mending import mend_of
from gatecert.gates.watching.origins import NOT_KNOWN, MadeOf, Origins, tensors_in

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
    "item", "tolist", "numpy", "is_nonzero", "__bool__", "__float__", "__int__", "__index__",
    "__array__", "__contains__", "__complex__",
})  # fmt: skip
"""By their whole names: `__float__` reads a number, while `Tensor.float` makes a tensor."""
_ALL_VALUES = frozenset(("numpy", "tolist", "__array__"))
_SHOWING = frozenset(("__repr__", "__format__", "__str__"))
_BOUNDS = frozenset(("lt", "le", "gt", "ge"))
_SPELLINGS = {"rsub": "sub", "truediv": "div", "rdiv": "div", "rtruediv": "div", "rmul": "mul"}
_MOST_OPS = 12


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a tensor came from: the two sides that were compared, and the operations since.

    `bound` is the plain number that it was last held against, `made_of` what the sides are made of,
    and `nan` says that one of them held NaN and the other none.
    """

    ops: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    bound: float | None = None
    expected: weakref.ref[torch.Tensor] | None = None
    made_of: MadeOf = NOT_KNOWN
    nan: bool = False


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

    def number_read(self, trace: Trace | None, answer: bool | None = None) -> None:
        """A number, or all of them, left a tensor; `answer` where it was a truth value."""
        ...

    def output_read(self) -> None:
        """What the entry gave back left torch, to be compared who knows how."""
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
        self.origins = Origins()

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
        whole_name = getattr(func, "__name__", "")
        name = whole_name.strip("_")
        name = _SPELLINGS.get(name, name)
        mend = None
        with contextlib.suppress(Exception):
            mend = mend_of(whole_name, args, kwargs, self.origins.made, self.origins.plain)
        try:
            answer = func(*args, **kwargs)
        except Exception:
            if name in COMPARING:
                self._watch.torch_compared(COMPARING[name], args, kwargs, None)
            raise
        with contextlib.suppress(Exception):
            told = self.origins.follow(whole_name, (*args, *kwargs.values()), answer, mend)
            if told and whole_name not in _READING and name not in COMPARING:
                self._watch.output_read()
        if name != "get":  # of a property, as `Tensor.shape` is
            with contextlib.suppress(Exception):
                if whole_name in _READING:
                    self._note_reading(whole_name, args[0], answer)
                elif whole_name in _SHOWING:
                    self._watch.tensor_shown()
                else:
                    self._note(name, args, kwargs, answer)
        return answer

    def _note_reading(self, name: str, tensor: torch.Tensor, answer: Any) -> None:
        trace = self._traces.get(tensor)
        if name in _ALL_VALUES and tensor.numel() > 1:
            trace = trace or Trace()
            trace = replace(trace, ops=(*trace.ops, VALUES))
        mended = self.origins.mended(tensor)  # of the error, perhaps
        if trace is not None and mended:
            trace = replace(trace, made_of=replace(trace.made_of, mended=mended))
        self._watch.number_read(trace, answer if isinstance(answer, bool) else None)
        if self.origins.made(tensor) and (trace is None or not trace.shapes):
            self._watch.output_read()

    def _note(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], answer: Any
    ) -> None:
        if name in COMPARING:
            self._watch.torch_compared(COMPARING[name], args, kwargs, answer)
        trace = self._trace(name, args, kwargs)
        if trace is not None:
            for tensor in tensors_in(answer):
                self._traces[tensor] = self._with_piece(trace, tensor)

    def _with_piece(self, trace: Trace, tensor: torch.Tensor) -> Trace:
        """The trace of a tensor that may be a part of what was compared."""
        piece = self.origins.piece(tensor)
        if piece is None or not trace.shapes:
            return trace
        pieces = (piece,) if piece.elements < piece.size else ()
        return replace(trace, made_of=replace(trace.made_of, pieces=pieces))

    def _trace(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Trace | None:
        sides = list(tensors_in((args, tuple(kwargs.values()))))
        full = [side for side in sides if side.dim() and side.numel() > 1]
        if name in _PAIRING and len(full) == 2 == len(sides):
            return Trace(
                ops=(name,),
                shapes=tuple(tuple(side.shape) for side in full),
                dtypes=tuple(dtype_name(side.dtype) for side in full),
                expected=weakref.ref(full[1]),
                made_of=self.origins.made_of(full),
                nan=len({_holds_nan(side) for side in full}) == 2,
            )
        known = [self._traces[side] for side in sides if side in self._traces]
        if not known:
            return Trace(ops=(name,)) if name in _REDUCING and sides else None
        main: Trace = next((trace for trace in known if trace.shapes), known[0])
        if name in _SAME_VALUES:
            return main
        # What an error is divided by or held against may be a norm; it is none of the error's.
        both_sided = [trace for trace in known if trace.shapes] or known
        ops = dict.fromkeys(op for trace in both_sided for op in trace.ops)
        ops[name] = None
        bound = main.bound
        if name in _BOUNDS and len(args) == 2 and isinstance(args[1], int | float):
            bound = float(args[1])
        return replace(main, ops=tuple(ops)[:_MOST_OPS], bound=bound)


def _holds_nan(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and bool(tensor.isnan().any())


def dtype_name(dtype: Any) -> str:
    """`float32`, of torch and numpy alike."""
    return str(dtype).removeprefix("torch.")
