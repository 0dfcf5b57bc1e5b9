"""Stand in for an entry: call it without its kernels, and substitute its outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gatecert.mutants.adversary_values import Output, without_last_row


class Substituting:
    """Calls the entry without its kernels and substitutes every output."""

    def __init__(self, original: Callable[..., Any], substitute: Callable[[Output], Any]) -> None:
        self._original = original
        self._substitute = substitute
        self._written: set[str] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import torch

        # First of all, so that its outputs get the memory that was freed last.
        with no_launches():
            blank = self._original(*args, **kwargs)
        places = {f"argument {i}": arg for i, arg in enumerate(args)} | kwargs
        inputs = {p: a for p, a in places.items() if isinstance(a, torch.Tensor)}
        before = {place: tensor.detach().clone() for place, tensor in inputs.items()}
        answers: list[tuple[Any, dict[str, Any]]] = []

        def right() -> tuple[Any, dict[str, Any]]:
            if not answers:
                answers.append(self._call_on_copies(args, kwargs, before))
            return answers[0]

        if not _has_tensors(blank) or _returns_argument(blank, inputs):
            self._written |= set(right()[1])
        for place in sorted(self._written & set(inputs)):
            output = Output(
                place, inputs[place], partial(_written, right, before, place),
                tuple(t for p, t in inputs.items() if p not in self._written), True,
            )  # fmt: skip
            _overwrite(inputs[place], self._substitute(output))
        return self._result(blank, partial(_part, right, 0), inputs, "result")

    def _result(
        self, blank: Any, right: Callable[[], Any], inputs: dict[str, Any], place: str
    ) -> Any:
        import torch

        if isinstance(blank, torch.Tensor):
            if _returns_argument(blank, inputs):
                return blank  # shows what was written in place
            return self._substitute(Output(place, blank, right, tuple(inputs.values()), False))
        if isinstance(blank, tuple | list):
            parts = [
                self._result(part, partial(_part, right, i), inputs, f"{place} {i}")
                for i, part in enumerate(blank)
            ]
            if hasattr(blank, "_fields"):
                return type(blank)(*parts)
            return type(blank)(parts)
        if isinstance(blank, dict):
            return {
                key: self._result(part, partial(_part, right, key), inputs, f"{place} {key}")
                for key, part in blank.items()
            }
        return blank

    def _call_on_copies(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], before: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """The right result, and what was written into which argument."""
        copies = {place: _copy_of(tensor) for place, tensor in before.items()}
        result = self._original(
            *(copies.get(f"argument {i}", arg) for i, arg in enumerate(args)),
            **{key: copies.get(key, value) for key, value in kwargs.items()},
        )
        written = {p: c for p, c in copies.items() if not _same_bits(c, before[p])}
        return result, written


class WithoutLast(Substituting):
    """Right, but the last output is missing, or the last row of the only one."""

    def __init__(self, original: Callable[..., Any]) -> None:
        super().__init__(original, without_last_row)

    def _result(
        self, blank: Any, right: Callable[[], Any], inputs: dict[str, Any], place: str
    ) -> Any:
        if isinstance(blank, dict) and _has_tensors(blank):
            return dict(list(right().items())[:-1])
        if isinstance(blank, tuple | list) and _has_tensors(blank):
            parts = list(right())[:-1]
            return parts if isinstance(blank, list) else tuple(parts)
        return super()._result(blank, right, inputs, place)


def _part(whole: Callable[[], Any], key: Any) -> Any:
    return whole()[key]


def _written(
    right: Callable[[], tuple[Any, dict[str, Any]]], before: dict[str, Any], place: str
) -> Any:
    """Right values of an argument; where this call writes none, the argument as it was."""
    return right()[1].get(place, before[place])


@contextlib.contextmanager
def no_launches() -> Iterator[None]:
    """Let every Triton launch do nothing, compiled or interpreted. To compile is no launch."""
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    def nothing(*_: Any, **__: Any) -> None:
        return None

    def silent(run: Callable[..., Any]) -> Callable[..., Any]:
        def compiling(*args: Any, **options: Any) -> Any:
            return run(*args, **options) if options.get("warmup") else None

        return compiling

    kinds = (JITFunction, InterpretedFunction, Autotuner)
    found = [(kind, kind.run) for kind in kinds]
    launcher_for = CompiledKernel.__getitem__
    try:
        for kind, run in found:
            kind.run = silent(run)
        CompiledKernel.__getitem__ = lambda *_: nothing
        yield
    finally:
        for kind, run in found:
            kind.run = run
        CompiledKernel.__getitem__ = launcher_for


def _has_tensors(value: Any) -> bool:
    import torch

    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return any(_has_tensors(part) for part in value)
    return isinstance(value, torch.Tensor)


def _returns_argument(value: Any, inputs: dict[str, Any]) -> bool:
    if isinstance(value, tuple | list):
        return any(_returns_argument(part, inputs) for part in value)
    return hasattr(value, "untyped_storage") and any(
        _storage(value) == _storage(tensor) != 0 for tensor in inputs.values()
    )


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _copy_of(tensor: Any) -> Any:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _overwrite(tensor: Any, values: Any) -> None:
    """Write values into an argument; those whose shape does not fit are not written."""
    import torch

    with torch.no_grad(), contextlib.suppress(RuntimeError):
        tensor.copy_(values.expand(tensor.shape))


def _same_bits(left: Any, right: Any) -> bool:
    import torch

    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool(torch.equal(_bits(left), _bits(right)))


def _bits(tensor: Any) -> Any:
    import torch

    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
