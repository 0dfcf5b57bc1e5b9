"""What a gate's own comparison makes of results, where it is known what that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from gatecert.diagnosis.values import TensorValue, Value, contents_of
from gatecert.gates.evidence import Compared
from gatecert.oracle.comparators import Comparator, judge
from gatecert.oracle.expectation import Expected


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparators by dtype of the results, of a published check or the oracle; or tolerances, the
    widest of those with which a gate compares them: pairs of `atol` and `rtol`."""

    comparators: dict[str, Comparator] = field(default_factory=dict)
    tolerances: tuple[tuple[float, float], ...] = ()

    def passes(self, results: Sequence[Value], expected: Expected, dtype: str) -> bool | None:
        """Would it say yes? None: not known of such results."""
        comparator = self.comparators.get(dtype)
        if comparator is None and not self.tolerances:
            return None
        if len(results) != len(expected.outputs):
            return False
        for value, wanted in zip(results, expected.outputs, strict=True):
            if not isinstance(value, TensorValue) or value.shape != wanted.shape:
                return False
            output = contents_of(value)
            if comparator is not None:
                if not judge(comparator, wanted, output).passed:
                    return False
            elif not any(self._close(output, wanted.reference, *pair) for pair in self.tolerances):
                return False
        return True

    @staticmethod
    def _close(output: torch.Tensor, reference: object, atol: float, rtol: float) -> bool:
        exact = torch.as_tensor(reference).double()
        return torch.allclose(output.double(), exact, rtol=rtol, atol=atol, equal_nan=True)


def comparison_of(compared: Iterable[Compared]) -> Comparison | None:
    """The tolerances by which a gate compared what the original gave; None where it is not seen
    that all of its comparisons have one."""
    pairs = {
        (one.atol, one.rtol) for one in compared if one.atol is not None and one.rtol is not None
    }
    return Comparison(tolerances=tuple(sorted(pairs))) if pairs else None
