"""Claims about lines that are followed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from gatecert.diagnosis.tracing import LineTrace

TEXT = """def sign(x):
    if x < 0:
        return -1
    return 1
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "signs.py"
    path.write_text(TEXT)
    made = ModuleType("signs")
    made.__file__ = str(path)
    exec(compile(TEXT, str(path), "exec"), made.__dict__)
    return made


@pytest.mark.parametrize(("x", "run"), [(-2, True), (2, False)])
def test_a_line_that_runs_inside_is_noticed(module: ModuleType, x: int, run: bool) -> None:
    assert module.__file__ is not None
    trace = LineTrace({module.__file__: frozenset({3})})
    module.sign(-1)
    with trace.following():
        module.sign(x)
    module.sign(-1)
    assert (trace.run, trace.masked) == (run, None)


def test_a_line_of_another_file_is_not_the_one(module: ModuleType, tmp_path: Path) -> None:
    trace = LineTrace({str(tmp_path / "other.py"): frozenset({3})})
    with trace.following():
        module.sign(-1)
    assert not trace.run
