"""Kernels that no gate may accept.

An adversary wraps the entry point, whatever it computes: it has the entry's outputs, tuples and
arguments written in place included, and puts something else in their stead. What it knows of
the outputs it learns from the launcher run *without its kernels*, so that no right answer is
ever left in freed memory by accident.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from gatecert.errors import InternalError
from gatecert.mutants.adversary_outputs import Substituting, WithoutLast, no_launches
from gatecert.mutants.adversary_values import SUBSTITUTES
from gatecert.mutants.entry_calls import showing_calls
from gatecert.mutants.plant import unified_diff
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.mutants.torch_operators import is_operator, substitute

ADVERSARIES: Mapping[str, str] = {
    "does_nothing": "launches no kernel: outputs are whatever memory held",
    "returns_zeros": "every output is zero",
    "returns_nan": "every output is NaN (integers: their least value)",
    "returns_input": "the output is an input",
    "returns_last_output": "the output is that of the call before",
    "returns_freed_memory": "the output is a block of memory that somebody else left values in",
    "fewer_outputs": "right values without the last output; of a single output, the last row",
    "wrong_element": "right values but for one small element, off by a part of the RMS",
    "wrong_shape": "right values with one more dim in front, which broadcasting forgives",
    "wrong_dtype": "right values in another dtype",
    "raises": "raises RuntimeError",
}
"""Name and what it does."""


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
    """Put an adversary in the place of a function or method, under all its names there; in that
    of an operator of torch, under all it has.

    Raises:
        InternalError: the module's namespace has nothing of that name, or there is no such
            adversary.
    """
    try:
        owner, last, original = _find(namespace, qualname)
    except (KeyError, AttributeError):
        raise InternalError(f"the entry's module has no {qualname!r}") from None
    if is_operator(original):
        substitute(original, lambda function: wrap(name, function))
        return
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

    return showing_calls(counted)  # a function, so that it binds as a method does


def _make(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    if name not in ADVERSARIES:
        raise InternalError(f"no adversary {name!r}")
    if name == "raises":
        return _raise
    if name == "does_nothing":
        return _silenced(original)
    if name == "fewer_outputs":
        return WithoutLast(original)
    return Substituting(original, SUBSTITUTES[name]())


def _raise(*_: Any, **__: Any) -> Any:
    raise RuntimeError("an adversary that raises")


def _silenced(original: Callable[..., Any]) -> Callable[..., Any]:
    def does_nothing(*args: Any, **kwargs: Any) -> Any:
        with no_launches():
            return original(*args, **kwargs)

    return does_nothing
