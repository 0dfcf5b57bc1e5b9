"""The cheapest set of cases that kills all that any of them kills: an integer program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from gatecert.errors import InternalError

_LEAST_COST = 1e-6
"""A case costs something: of two sets that cost nothing the smaller one is taken."""


def cheapest_cover(kills: Mapping[str, frozenset[str]], costs: Mapping[str, float]) -> list[str]:
    """Cases such that every mutant which some case kills is killed, at the least sum of costs.

    `kills` has the mutants by case. Cases come in the order of `kills`.

    Raises:
        InternalError: the solver found no optimum, which it always does.
    """
    cases = [case for case, mutants in kills.items() if mutants]
    mutants = sorted(frozenset().union(*(kills[case] for case in cases))) if cases else []
    if not mutants:
        return []
    covers = np.array([[mutant in kills[case] for case in cases] for mutant in mutants], float)
    found = milp(
        c=np.array([max(_LEAST_COST, costs[case]) for case in cases]),
        constraints=LinearConstraint(covers, lb=1.0),
        integrality=np.ones(len(cases)),
        bounds=Bounds(0.0, 1.0),
    )
    if not found.success:
        raise InternalError(f"no smallest set was found: {found.message}")
    return [case for case, chosen in zip(cases, found.x, strict=True) if chosen > 0.5]
