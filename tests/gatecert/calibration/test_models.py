"""A need is the smallest constant under which the record passes, whatever the model."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
import torch

from gatecert.calibration.models import MODELS, Facts
from gatecert.oracle.comparators import Comparator, judge
from gatecert.oracle.observation import observe
from tests.oracle.expectations import expected


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("step", [0.0, 2.0**-11])
def test_an_output_passes_at_its_need_and_fails_below(name: str, step: float) -> None:
    generator = np.random.default_rng(0)
    model = MODELS[name]
    for turn in range(20):
        r = generator.normal(size=50)
        made = expected(
            r,
            contraction=bool(turn % 2),
            mid_unit=step,
            baseline=(r * (1 + 1e-5 * generator.normal(size=50))).astype(np.float32),
        )
        y = torch.from_numpy(r * (1 + 1e-4 * generator.normal(size=50))).to(torch.float32)
        seen = observe(made, y)
        need = model.need(seen, "float32")
        facts = Facts("float32", seen.interval)

        passed = []
        for constant in (need * (1 + 1e-9), need * (1 - 1e-9)):
            comparator = model.make(constant, 1.0, facts)
            again = msgspec.convert(msgspec.to_builtins(comparator), Comparator)
            passed.append(judge(again, made, y).passed)
        assert 0.0 < need < math.inf
        assert passed == [True, False]


@pytest.mark.parametrize("name", MODELS)
def test_a_right_output_needs_less_than_any_floor(name: str) -> None:
    made = expected([1.0, -2.0, 0.0])
    need = MODELS[name].need(observe(made, torch.tensor([1.0, -2.0, 0.0])), "float32")
    assert need == 0.0


@pytest.mark.parametrize("name", ["ratio", "rms"])
def test_an_error_against_nothing_has_no_constant(name: str) -> None:
    made = expected([0.0, 0.0])
    assert MODELS[name].need(observe(made, torch.tensor([0.0, 1e-9])), "float32") == math.inf
