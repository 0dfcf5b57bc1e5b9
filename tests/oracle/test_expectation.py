"""Claims about expectations that no operation of the corpus puts to the test."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch

from gatecert.oracle.cases import make_case
from gatecert.oracle.comparators import AllClose, RoundingInterval, judge
from gatecert.oracle.expectation import expect
from gatecert.oracle.formats import STORAGE_FORMATS
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.observation import observe
from gatecert.oracle.schema import Tensor, operation, tensor

Codes = Annotated[torch.Tensor, tensor("N", kind="float8_e4m3fn")]


@operation(shadow=lambda y, x: y.abs(), recipes=("nonfinite",))
def narrowed(x: Annotated[torch.Tensor, Tensor["N"]]) -> Codes:
    return x * 1e4


def test_what_a_saturating_format_cannot_hold_is_expected_as_its_largest_value() -> None:
    case = make_case(narrowed, {"N": 40}, dtype="float32", recipe="nonfinite", seed=1)
    inputs = make_inputs(narrowed, case)
    # Rows of one dim hold one special value; all kinds are wanted here.
    inputs.args[0][:3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    (made,) = expect(narrowed, case, inputs).outputs
    largest = STORAGE_FORMATS["float8_e4m3fn"].largest
    assert np.abs(made.reference[np.isfinite(made.reference)]).max() == largest
    assert np.isnan(made.reference[0]) and made.reference[1] == largest == -made.reference[2]

    output = (inputs.args[0] * 1e4).to(torch.float8_e4m3fn)
    assert judge(RoundingInterval(), made, output).passed
    assert judge(AllClose(0.0, 0.07), made, output).passed
    assert observe(made, output).moments.largest_error < largest * 0.07
