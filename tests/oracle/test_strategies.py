"""Claims about strategies: the seven of the published ablation, and what each is of."""

from __future__ import annotations

import numpy as np
import pytest

from gatecert.errors import UsageError
from gatecert.oracle.cases import cases_for, why_no_case
from gatecert.oracle.formats import FORMATS, FloatFormat, round_to
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.strategies import STRATEGIES, get_strategy
from gatecert.oracle.streams import Stream
from gatecert.oracle.values import RECIPES

SEVEN = (
    *("default", "regular", "boundary", "adversarial"),
    *("nan_injected", "single_dtype_f32", "single_dtype_f16"),
)
DTYPES = ("float32", "float16", "bfloat16")


def test_the_seven_strategies_of_the_published_ablation_are_here() -> None:
    assert set(SEVEN) | {"exact", "certify", "quick"} <= set(STRATEGIES)
    with pytest.raises(UsageError, match="did you mean 'nan_injected'"):
        get_strategy("nan_inject")


@pytest.mark.parametrize("name", SEVEN)
def test_each_of_the_seven_has_cases_for_softmax(name: str) -> None:
    cases = cases_for(get_operation("softmax"), dtypes=DTYPES, strategy=name)
    assert len({case.recipe for case in cases}) >= 1
    assert why_no_case(get_operation("softmax"), name, dtypes=DTYPES) is None


@pytest.mark.parametrize(
    ("name", "dtype"), [("single_dtype_f32", "float32"), ("single_dtype_f16", "float16")]
)
def test_a_strategy_of_one_dtype_has_the_default_s_cases_in_it_and_no_others(
    name: str, dtype: str
) -> None:
    softmax = get_operation("softmax")
    cases = cases_for(softmax, dtypes=DTYPES, strategy=name)
    assert {case.dtype for case in cases} == {dtype}
    assert cases == cases_for(softmax, dtypes=(dtype,), strategy="default")


def test_a_strategy_without_a_case_says_why() -> None:
    matmul = get_operation("matmul")
    assert cases_for(matmul, dtypes=("bfloat16",), strategy="single_dtype_f16") == ()
    said = why_no_case(matmul, "single_dtype_f16", dtypes=("bfloat16",))
    assert said == "strategy 'single_dtype_f16' is of float16 alone"
    said = why_no_case(matmul, "nan_injected", dtypes=DTYPES)
    assert said == "the domain of operation 'matmul' has none of the recipes nan_injected"


def test_one_injected_value_in_twenty_is_special_and_all_kinds_are_there() -> None:
    values = RECIPES["nan_injected"].make(Stream("x"), (400, 257), FORMATS["float16"])
    kinds = [np.isnan(values), values == np.inf, values == -np.inf, values == 0.0]
    shares = [kind.mean() for kind in kinds]
    assert sum(shares) == pytest.approx(0.05, abs=0.003)
    assert all(share == pytest.approx(0.0125, abs=0.0015) for share in shares)
    assert np.abs(values[np.isfinite(values)]).max() > 9.9


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_adversarial_values_are_five_buckets_in_every_dtype(fmt: FloatFormat) -> None:
    # The published code has fixed 1e-30 and 1e30, which float16 turns into 0 and infinity.
    made = RECIPES["adversarial"].make(Stream("x"), (400, 257), fmt)
    values = round_to(made, fmt)
    assert np.array_equal(np.isfinite(values), np.isfinite(made))
    size = np.abs(values[np.isfinite(values)])
    total = values.size
    assert (~np.isfinite(values)).sum() / total == pytest.approx(0.2, abs=0.01)
    assert (size == 0).sum() / total == pytest.approx(0.2, abs=0.01)
    tiny = (size > 0) & (size < fmt.smallest_normal)
    assert tiny.sum() / total == pytest.approx(0.2, abs=0.01)
    assert (size > 1000).sum() / total == pytest.approx(0.2, abs=0.02)


def test_adversarial_cases_have_special_values_where_the_domain_has_them() -> None:
    for name, special in (("softmax", True), ("matmul", False)):
        made = get_operation(name)
        cases = cases_for(made, dtypes=DTYPES, strategy="adversarial")
        values = [arg for case in cases for arg in make_inputs(made, case).args]
        assert any(not value.isfinite().all() for value in values) is special
