"""A file is imported from where its package, the project's settings or its users say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.drafting.layout import declared_roots, place
from tests.gatecert.drafting.repositories import write


@pytest.mark.parametrize(
    ("settings", "folder"),
    [
        ({"pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["lib"]\n'}, "lib"),
        ({"pyproject.toml": '[tool.setuptools.package-dir]\n"" = "lib"\n'}, "lib"),
        ({"pyproject.toml": '[tool.hatch.build.targets.wheel]\npackages = ["lib/acme"]\n'}, "lib"),
        ({"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = "lib"\n'}, "lib"),
        ({"pytest.ini": "[pytest]\npythonpath = lib\n"}, "lib"),
        ({"setup.cfg": "[options]\npackage_dir =\n    = lib\n"}, "lib"),
        ({"pyproject.toml": "not toml ["}, "."),
    ],
)
def test_a_folder_that_the_project_declares_holds_namespace_packages(
    tmp_path: Path, settings: dict[str, str], folder: str
) -> None:
    write(tmp_path, {**settings, "lib/acme/kernels.py": ""})
    found, module = place(
        tmp_path / "lib/acme/kernels.py", tmp_path, declared_roots(tmp_path), frozenset()
    )
    assert found == (tmp_path / folder).resolve()
    assert module == ("acme.kernels" if folder == "lib" else "lib.acme.kernels")


def test_what_others_import_decides_for_a_loose_file(tmp_path: Path) -> None:
    file = write(tmp_path, {"ops/kernels.py": ""}) / "ops/kernels.py"
    assert place(file, tmp_path, (), {"kernels"}) == (tmp_path / "ops", "kernels")
    assert place(file, tmp_path, (), {"ops.kernels"}) == (tmp_path, "ops.kernels")
    assert place(file, tmp_path, (), set()) == (tmp_path, "ops.kernels")


def test_a_folder_that_is_no_identifier_is_the_import_path_itself(tmp_path: Path) -> None:
    file = write(tmp_path, {"my-ops/kernels.py": ""}) / "my-ops/kernels.py"
    assert place(file, tmp_path, (), set()) == (tmp_path / "my-ops", "kernels")


def test_a_test_module_without_a_package_is_imported_from_its_folder(tmp_path: Path) -> None:
    write(tmp_path, {"tests/test_a.py": "", "unit/__init__.py": "", "unit/test_b.py": ""})
    assert place(tmp_path / "tests/test_a.py", tmp_path, (), set()) == (
        tmp_path / "tests",
        "test_a",
    )
    assert place(tmp_path / "unit/test_b.py", tmp_path, (), set()) == (tmp_path, "unit.test_b")
