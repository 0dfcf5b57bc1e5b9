from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gatecert.oracle.formats import (
    FORMATS,
    STORAGE_FORMATS,
    half_gap_towards,
    round_to,
    spacing,
    to_float64,
    torch_dtype,
)

NUMPY = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
ALL = {**FORMATS, **STORAGE_FORMATS}


@pytest.mark.parametrize("name", FORMATS)
def test_every_16_bit_value_and_a_sweep_of_float32_rounds_to_itself(name: str) -> None:
    if name == "float32":
        bits = np.arange(0, 2**32, 65_537, dtype=np.uint64).astype(np.uint32)
    else:
        bits = np.arange(2**16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):  # casting a signalling NaN
        values = bits.view(NUMPY[name]).astype(np.float64)
    assert np.array_equal(round_to(values, FORMATS[name]), values, equal_nan=True)


@pytest.mark.parametrize("name", STORAGE_FORMATS)
def test_every_8_bit_value_rounds_to_itself_and_is_what_torch_holds(name: str) -> None:
    bits = np.arange(2**8, dtype=np.uint8)
    values = bits.view(NUMPY[name]).astype(np.float64)
    assert np.array_equal(round_to(values, ALL[name]), values, equal_nan=True)
    held = to_float64(torch.from_numpy(bits).view(torch_dtype(name)))
    assert np.array_equal(held, values, equal_nan=True)


@pytest.mark.parametrize("name", STORAGE_FORMATS)
def test_rounding_to_8_bits_is_that_of_torch_also_beyond_the_largest_value(name: str) -> None:
    fmt = ALL[name]
    values = np.arange(2**8, dtype=np.uint8).view(NUMPY[name]).astype(np.float64)
    values = np.sort(values[np.isfinite(values)])
    between = np.concatenate([values, (values[1:] + values[:-1]) / 2, values * 1.01, values * 0.99])
    beyond = fmt.largest * np.array([1.01, 1.05, 1.2, 1e6, np.inf, np.nan])
    tried = np.concatenate([between, beyond, -beyond]).astype(np.float32)
    wanted = to_float64(torch.from_numpy(tried).to(torch_dtype(name)))
    found = round_to(tried.astype(np.float64), fmt)
    assert np.array_equal(found, wanted, equal_nan=True)


@pytest.mark.parametrize("name", ALL)
def test_the_limits_are_those_of_the_format(name: str) -> None:
    info = ml_dtypes.finfo(NUMPY[name])
    fmt = ALL[name]
    assert fmt.largest == float(info.max)
    assert fmt.smallest_normal == float(info.smallest_normal)
    assert spacing(np.array([0.0]), fmt)[0] == float(info.smallest_subnormal)
    assert fmt.unit == float(info.eps) / 2


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, width=64))
def test_rounding_to_float16_and_float32_is_that_of_numpy(value: float) -> None:
    for name in ("float16", "float32"):
        with np.errstate(over="ignore", under="ignore"):
            wanted = np.float64(value).astype(NUMPY[name]).astype(np.float64)
        assert round_to(np.array([value]), FORMATS[name])[0] == wanted


def test_rounding_to_bfloat16_is_done_once() -> None:
    # Just above the midpoint of two bfloat16 values, but at it in float32.
    value = 1.0 + 2.0**-8 + 2.0**-40
    assert round_to(np.array([value]), FORMATS["bfloat16"])[0] == 1.0 + 2.0**-7
    assert float(torch.tensor(value, dtype=torch.float64).to(torch.bfloat16)) == 1.0


def test_subnormals_of_float16_decode_to_their_values() -> None:
    # A published validator subtracts the wrong power of two here.
    bits = torch.tensor([0x0001, 0x03FF, 0x0400], dtype=torch.int16)
    decoded = to_float64(bits.view(torch.float16))
    assert decoded.tolist() == [2.0**-24, 1023 * 2.0**-24, 2.0**-14]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_gap_below_a_power_of_two_is_half_the_gap_above(name: str, sign: float) -> None:
    fmt = ALL[name]
    y = np.array([sign, sign, 0.0, sign * fmt.smallest_normal])
    r = np.array([sign * 1.5, sign * 0.5, sign, 0.0])
    least = spacing(np.array([0.0]), fmt)[0]
    wanted = [fmt.unit, fmt.unit / 2, least / 2, least / 2]
    assert half_gap_towards(y, r, fmt).tolist() == wanted


@pytest.mark.parametrize("name", FORMATS)
def test_values_up_to_half_a_gap_beyond_the_largest_round_to_it(name: str) -> None:
    fmt = FORMATS[name]
    inside, outside = np.nextafter(fmt.overflow, 0.0), fmt.overflow
    rounded = round_to(np.array([inside, outside, -outside]), fmt)
    assert rounded.tolist() == [fmt.largest, np.inf, -np.inf]
