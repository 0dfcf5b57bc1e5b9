"""Where the generators start that tests share and seldom seed.

Children are forks of one server, which inherit its state or draw a seed from the clock: without
this the same command would give other verdicts, on mutants and on the original.
"""

from __future__ import annotations

import random

import numpy as np
import torch

JUDGING_SEED = 0
"""Every candidate is judged with it."""


def seed_generators(seed: int) -> None:
    """Start the generators of `random`, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def seed_of_run(number: int, runs: int) -> int:
    """Another seed in each of the whole runs on the original, counted from 0, so that chance
    shows; the last one has the seed of judging."""
    return JUDGING_SEED + runs - 1 - number
