"""What the operators ask about a kernel, found out once for all of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from gatecert.operators.facts.addresses import Addresses
from gatecert.operators.facts.cancellation import Cancellation
from gatecert.operators.facts.dataflow import Dataflow, analyse
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import Memory
from gatecert.operators.facts.polynomials import Polynomials
from gatecert.operators.facts.shapes import Typing
from gatecert.operators.facts.softmax import Rescale, rescales


@dataclass(frozen=True)
class Analysis:
    """Facts of one kernel, each found when it is first asked for."""

    flow: Dataflow

    @functools.cached_property
    def typing(self) -> Typing:
        """Kinds and shapes."""
        return Typing(self.flow)

    @functools.cached_property
    def memory(self) -> Memory:
        """Loads, stores and their masks."""
        return Memory(self.flow.kernel)

    @functools.cached_property
    def addresses(self) -> Addresses:
        """What addresses are made from."""
        return Addresses(self)

    @functools.cached_property
    def integers(self) -> Polynomials:
        """Indices as polynomials."""
        return Polynomials(self.flow)

    @functools.cached_property
    def cancellation(self) -> Cancellation:
        """What cancels."""
        return Cancellation(self.typing)

    @functools.cached_property
    def rescales(self) -> tuple[Rescale, ...]:
        """Where running values are brought to a new maximum."""
        return rescales(self.flow)


def analysis(kernel: KernelSyntax) -> Analysis:
    """The facts of a kernel; operators that are asked one after another share them."""
    return _latest(_Same(kernel))


@dataclass(frozen=True, eq=False, slots=True)
class _Same:
    """A kernel that equals itself alone: the same nodes, not the same text."""

    kernel: KernelSyntax

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Same)
            and other.kernel.function is self.kernel.function
            and other.kernel.language_names == self.kernel.language_names
        )

    def __hash__(self) -> int:
        return hash(self.kernel.function)


@functools.lru_cache(maxsize=1)
def _latest(same: _Same) -> Analysis:
    return Analysis(analyse(same.kernel))
