"""Texts to paste do what they say: they compile, and pass on right code and fail on wrong."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import pytest
import torch

from gatecert.config import load_config
from gatecert.oracle.case import parse_case
from gatecert.remedies.texts import config_text, pytest_text, snippet_text
from gatecert.subjects import Subject

SMALL = "softmax/{}/B=2,N=3/contiguous/normal/seed=0"
SUBJECT = Subject("soft max", "acme_kernels:softmax", "softmax", dtypes=("float32", "float16"))


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., torch.Tensor]], None]:
    """Puts a function where the subject's entry is imported from."""

    def put(function: Callable[..., torch.Tensor]) -> None:
        module = types.ModuleType("acme_kernels")
        module.softmax = function  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "acme_kernels", module)

    return put


def right(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 1)


def wrong(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 1) * 1.01


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_script_passes_right_code_and_fails_wrong_code(
    entry: Callable[..., None], dtype: str
) -> None:
    text = snippet_text(SUBJECT, parse_case(SMALL.format(dtype)))
    assert text is not None and "gatecert" not in text
    entry(right)
    exec(compile(text, "snippet", "exec"), {})
    entry(wrong)
    with pytest.raises(AssertionError, match="output is wrong by"):
        exec(compile(text, "snippet", "exec"), {})


def test_there_is_no_script_where_values_do_not_say_it_all() -> None:
    assert snippet_text(SUBJECT, parse_case(SMALL.format("float32").replace("N=3", "N=99"))) is None
    strided = SMALL.format("float32").replace("contiguous", "transposed")
    assert snippet_text(SUBJECT, parse_case(strided)) is None


def test_a_script_holds_infinite_inputs_and_none_is_made_of_nan(entry: Callable[..., None]) -> None:
    masked = SMALL.format("float32").replace("normal", "masked_rows")
    text = snippet_text(SUBJECT, parse_case(masked))
    assert text is not None and '-float("inf")' in text
    entry(right)
    exec(compile(text, "snippet", "exec"), {})
    assert snippet_text(SUBJECT, parse_case(masked.replace("masked_rows", "nonfinite"))) is None


def test_a_test_module_passes_right_code_and_fails_wrong_code(entry: Callable[..., None]) -> None:
    cases = [SMALL.format(dtype) for dtype in ("float32", "float16")]
    text = pytest_text(SUBJECT, cases, "Said.")
    for function, passes in ((right, True), (wrong, False)):
        entry(function)
        names: dict[str, Callable[[str], None]] = {}
        exec(compile(text, "test_module", "exec"), names)
        for case in cases:
            if passes:
                names["test_soft_max_is_right_on"](case)
            else:
                with pytest.raises(AssertionError, match="elements of output are wrong"):
                    names["test_soft_max_is_right_on"](case)


def test_a_table_is_one_of_gatecert_toml(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "gatecert.toml"
    case = SMALL.format("float32")
    path.write_text(f'[subject.s]\noperation = "softmax"\nentry = "m:f"\n\n{config_text([case])}')
    assert load_config(path).oracles["oracle-added"].cases == (case,)
