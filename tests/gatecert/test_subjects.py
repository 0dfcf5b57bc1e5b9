"""What a user's module says is wrong keeps its words and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.errors import UsageError
from gatecert.oracle.operations import resolve_operation
from gatecert.subjects import load_attribute

BAD = """
from gatecert import Tensor, operation

@operation()
def twice(x: Tensor["B ?"]) -> Tensor["B ?"]:
    return 2 * x
"""


def test_a_schema_that_does_not_fit_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "references_with_bad_dim.py").write_text(BAD)
    monkeypatch.syspath_prepend(tmp_path)
    for load in (resolve_operation, lambda spec: load_attribute(spec, "entry")):
        with pytest.raises(UsageError, match="'\\?' is no dim"):
            load("references_with_bad_dim:twice")
