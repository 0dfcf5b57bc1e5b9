"""What a user's module says is wrong keeps its words and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.errors import EnvironmentFailure, UsageError
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


def test_a_module_that_its_package_lacks_is_a_usage_error_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package_of_two"
    package.mkdir()
    for name in ("__init__", "softmax", "matmul"):
        (package / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"no module 'sofmax'; did you mean 'softmax'\?"):
        load_attribute("package_of_two.sofmax:softmax", "entry")
    with pytest.raises(UsageError, match=r"package_of_two\.softmax is no package"):
        load_attribute("package_of_two.softmax.fast:softmax", "entry")


def test_an_import_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    folders = (str(tmp_path), str(tmp_path / "scr"))
    with pytest.raises(EnvironmentFailure, match=r"\(there is no folder \S*/scr, which it names\)"):
        load_attribute("module_of_nobody:f", "entry", folders)
    with pytest.raises(EnvironmentFailure, match=r"gatecert\.toml$"):
        load_attribute("module_of_nobody:f", "entry", folders[:1])
