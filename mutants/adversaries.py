"""Kernels that no gate may accept.

An adversary wraps the entry point, whatever it computes: it has the entry's outputs, tuples and
arguments written in place included, and puts something else in their stead. What it knows of
the outputs it learns from the launcher run *without its kernels*, so that no right answer is
ever left in freed memory by accident.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any

from gatecert.errors import InternalError
from gatecert.mutants.plant import unified_diff
from gatecert.mutants.records import Candidate, CandidateKind

ADVERSARIES: Mapping[str, str] = {
    "does_nothing": "launches no kernel: outputs are whatever memory held",
    "returns_zeros": "every output is zero",
    "returns_nan": "every output is NaN (integers: their least value)",
    "returns_input": "the output is an input",
    "returns_last_output": "the output is that of the call before",
    "returns_freed_memory": "the output is a block of memory that somebody else left values in",
    "wrong_shape": "right values with one more dim in front, which broadcasting forgives",
    "wrong_dtype": "right values in another dtype",
    "raises": "raises RuntimeError",
}
"""Name and what it does."""

_BLOCKS_TO_TRY = 64
_PLAUSIBLE_MAGNITUDE = 1e6
_SAMPLE = 4096


@dataclass(slots=True)
class _Counter:
    count: int = 0


_CALLS = _Counter()


def calls() -> int:
    """How often adversaries were called in this process: a gate that called none judged none."""
    return _CALLS.count


def adversary_candidates(subject: str, qualname: str, path: str, text: str) -> list[Candidate]:
    """Overlays of a module whose last lines put an adversary in the place of one function.

    `path` and `text` are those of the module where the entry is *defined*, so that whoever
    imports it, from there or from a package that re-exports it, gets the adversary. `qualname`
    is its name there, `function` or `Class.method`; `module:` before it names the module in
    the diff.
    """
    module, _, attribute = qualname.rpartition(":")
    candidates = []
    for name, sentence in ADVERSARIES.items():
        overlaid = (
            f"{text.rstrip()}\n\n\n"
            "from gatecert.mutants.adversaries import install as _gatecert_install\n\n"
            f"_gatecert_install(globals(), {attribute!r}, {name!r})\n"
        )
        candidates.append(
            Candidate(
                id=f"{subject}/adversary/{name}",
                kind=CandidateKind.ADVERSARY,
                subject=subject,
                files={path: overlaid},
                detail=sentence,
                diff=unified_diff(module or PurePath(path).stem, text, overlaid),
            )
        )
    return candidates


def install(namespace: dict[str, Any], qualname: str, name: str) -> None:
    """Put an adversary in the place of a function or method, under all its names there.

    Raises:
        InternalError: the module's namespace has nothing of that name, or there is no such
            adversary.
    """
    try:
        owner, last, original = _find(namespace, qualname)
    except (KeyError, AttributeError):
        raise InternalError(f"the entry's module has no {qualname!r}") from None
    adversary = wrap(name, original)
    if owner is None:
        for alias in [key for key, value in namespace.items() if value is original]:
            namespace[alias] = adversary
        return
    is_method = inspect.isfunction(inspect.getattr_static(owner, last))
    # One that takes self gets it from the wrapper.
    setattr(owner, last, adversary if is_method else staticmethod(adversary))


def _find(namespace: dict[str, Any], qualname: str) -> tuple[Any, str, Any]:
    """What holds a name (None: the namespace itself), its last part, and what it stands for."""
    last, *rest = qualname.split(".")
    owner, found = None, namespace[last]
    for last in rest:
        owner, found = found, getattr(found, last)
    return owner, last, found


def wrap(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """The adversary of that name in the place of `original`; its calls are counted.

    Raises:
        InternalError: there is no such adversary.
    """
    adversary = _make(name, original)

    def counted(*args: Any, **kwargs: Any) -> Any:
        _CALLS.count += 1
        return adversary(*args, **kwargs)

    return counted  # a function, so that it binds as a method does


def _make(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    if name not in ADVERSARIES:
        raise InternalError(f"no adversary {name!r}")
    if name == "raises":
        return _raise
    if name == "does_nothing":
        return _silenced(original)
    return _Adversary(original, _SUBSTITUTES[name]())


def _raise(*_: Any, **__: Any) -> Any:
    raise RuntimeError("an adversary that raises")


def _silenced(original: Callable[..., Any]) -> Callable[..., Any]:
    def does_nothing(*args: Any, **kwargs: Any) -> Any:
        with _no_launches():
            return original(*args, **kwargs)

    return does_nothing


@dataclass(slots=True)
class _Output:
    """One output of one call: where it stands, what is known of it, and who gets its place."""

    place: str
    blank: Any
    """The output as the launcher makes it without its kernels; right in shape and dtype."""
    right: Callable[[], Any]
    """Computes the right values, on copies of the arguments."""
    inputs: tuple[Any, ...]
    in_place: bool


class _Adversary:
    """Calls the entry without its kernels and substitutes every output."""

    def __init__(self, original: Callable[..., Any], substitute: Callable[[_Output], Any]) -> None:
        self._original = original
        self._substitute = substitute
        self._written: set[str] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import torch

        # First of all, so that its outputs get the memory that was freed last.
        with _no_launches():
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
            output = _Output(
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
            return self._substitute(_Output(place, blank, right, tuple(inputs.values()), False))
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


def _part(whole: Callable[[], Any], key: Any) -> Any:
    return whole()[key]


def _written(
    right: Callable[[], tuple[Any, dict[str, Any]]], before: dict[str, Any], place: str
) -> Any:
    """Right values of an argument; where this call writes none, the argument as it was."""
    return right()[1].get(place, before[place])


def _zeros(output: _Output) -> Any:
    import torch

    return torch.zeros_like(output.blank)


def _nan(output: _Output) -> Any:
    import torch

    if output.blank.is_floating_point() or output.blank.is_complex():
        return torch.full_like(output.blank, float("nan"))
    least = 0 if output.blank.dtype is torch.bool else torch.iinfo(output.blank.dtype).min
    return torch.full_like(output.blank, least)


def _input(output: _Output) -> Any:
    for tensor in output.inputs:
        if tensor.shape == output.blank.shape:
            return tensor if tensor.dtype == output.blank.dtype else tensor.to(output.blank.dtype)
    return output.inputs[0] if output.inputs else output.blank


@dataclass(slots=True)
class _LastOutput:
    """Keeps the right values of each output until the next call."""

    kept: dict[str, Any] = field(default_factory=dict)

    def __call__(self, output: _Output) -> Any:
        import torch

        last = self.kept.get(output.place)
        fits = (
            last is not None
            and last.shape == output.blank.shape
            and last.dtype == output.blank.dtype
        )
        answer = last if fits else torch.empty_like(output.blank)
        self.kept[output.place] = output.right().detach().clone()
        return answer


def _freed_memory(output: _Output) -> Any:
    """The launcher's own output, or the first block of its size whose values look computed.

    Blocks that do not are held, so that each allocation gets another one; double precision is
    tried too, where references are kept.
    """
    import torch

    blank = output.blank
    if not output.in_place and _looks_computed(blank):
        return blank
    held = []
    for dtype in dict.fromkeys((blank.dtype, torch.float64)):
        for _ in range(_BLOCKS_TO_TRY):
            block = torch.empty(blank.shape, dtype=dtype, device=blank.device)
            if _looks_computed(block):
                return block.to(blank.dtype)
            held.append(block)
    return torch.empty_like(blank)


def _looks_computed(block: Any) -> bool:
    """Nearly all values finite, of moderate size and different from one another.

    Not all: an allocator may have written a few bytes of its own into the freed block.
    """
    import torch

    if block.numel() == 0:
        return True
    sample = block.flatten()[:_SAMPLE].to(torch.float64)
    moderate = sample[sample.isfinite() & (sample.abs() < _PLAUSIBLE_MAGNITUDE)]
    if moderate.numel() < 0.99 * sample.numel() - 4 or moderate.numel() == 0:
        return False
    varied = sample.numel() < 4 or moderate.unique().numel() > sample.numel() // 4
    return bool(varied and moderate.abs().max() > 1e-6)


def _wrong_shape(output: _Output) -> Any:
    right = output.right()
    if not output.in_place:
        return right.unsqueeze(0)
    # What broadcasting a first row over the argument would write.
    return right[:1] if right.dim() else right + 1


def _wrong_dtype(output: _Output) -> Any:
    import torch

    right = output.right()
    if output.in_place:  # bits of one dtype, read as another
        sized = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        return right.contiguous().view(sized[right.element_size()])
    if right.is_floating_point():
        return right.to(torch.float64 if right.dtype is torch.float32 else torch.float32)
    return right.to(torch.float32)


_SUBSTITUTES: Mapping[str, Callable[[], Callable[[_Output], Any]]] = {
    "returns_zeros": lambda: _zeros,
    "returns_nan": lambda: _nan,
    "returns_input": lambda: _input,
    "returns_last_output": _LastOutput,
    "returns_freed_memory": lambda: _freed_memory,
    "wrong_shape": lambda: _wrong_shape,
    "wrong_dtype": lambda: _wrong_dtype,
}


@contextlib.contextmanager
def _no_launches() -> Iterator[None]:
    """Let every Triton launch do nothing, compiled and interpreted alike."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    def nothing(*_: Any, **__: Any) -> None:
        return None

    kinds = (JITFunction, InterpretedFunction, Autotuner)
    found = [(kind, kind.run) for kind in kinds]
    try:
        for kind in kinds:
            kind.run = nothing
        yield
    finally:
        for kind, run in found:
            kind.run = run


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
