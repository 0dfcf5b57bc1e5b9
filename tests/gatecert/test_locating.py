"""A module's file is found without importing it or what lies above it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gatecert.locating import find_source, module_of, package_root


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg_not_imported" / "inner"
    folder.mkdir(parents=True)
    (tmp_path / "pkg_not_imported" / "__init__.py").write_text("raise SystemExit\n")
    (folder / "__init__.py").write_text("raise SystemExit\n")
    (folder / "leaf.py").write_text("raise SystemExit\n")
    return tmp_path


def test_a_module_is_found_below_a_package_that_must_not_be_imported(package: Path) -> None:
    found = find_source("pkg_not_imported.inner.leaf", [str(package)])
    assert found == package / "pkg_not_imported/inner/leaf.py"
    assert find_source("pkg_not_imported", [str(package)]) == (
        package / "pkg_not_imported/__init__.py"
    )
    assert "pkg_not_imported" not in sys.modules


@pytest.mark.parametrize("name", ["pkg_not_imported.gone", "pkg_not_imported.inner.leaf.deeper"])
def test_what_is_not_there_is_none(package: Path, name: str) -> None:
    assert find_source(name, [str(package)]) is None
    assert find_source("no_such_package.at_all") is None
    assert find_source("sys") is None


def test_a_file_knows_its_package(package: Path) -> None:
    leaf = package / "pkg_not_imported/inner/leaf.py"
    assert module_of(leaf) == "pkg_not_imported.inner.leaf"
    assert module_of(leaf.parent / "__init__.py") == "pkg_not_imported.inner"
    assert package_root(leaf) == package.resolve()
