"""The package list, the links and the exported names hold together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gatecert
from gatecert import Scalar, Tensor, operation

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FOLDERS = ("mutants", "operators", "oracle", "reports")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages_on_disk() -> set[str]:
    """Every folder with an `__init__.py`, under the name that it is imported by."""
    found = set()
    for top, prefix in (("gatecert", ""), *((name, "gatecert.") for name in FOLDERS)):
        for init in (ROOT / top).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            if top != "gatecert" or len(parts) == 1 or parts[1] not in FOLDERS:
                found.add(prefix + ".".join(parts))
    return found


def test_every_folder_of_python_is_a_listed_package(project: dict[str, Any]) -> None:
    listed = project["tool"]["setuptools"]["packages"]
    assert set(listed) == packages_on_disk()
    assert listed == sorted(listed)


def test_no_module_lies_in_a_folder_that_is_no_package() -> None:
    for top in ("gatecert", *FOLDERS):
        for path in (ROOT / top).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_the_mapping_names_the_four_folders(project: dict[str, Any]) -> None:
    mapping = project["tool"]["setuptools"]["package-dir"]
    assert mapping == {"gatecert": "gatecert", **{f"gatecert.{name}": name for name in FOLDERS}}


def test_data_files_are_listed_by_a_pattern(project: dict[str, Any]) -> None:
    patterns = project["tool"]["setuptools"]["package-data"]
    for top in ("gatecert", *FOLDERS):
        for path in (ROOT / top).rglob("*"):
            inside = path.is_file() and path.suffix not in {".py", ".pyc"}
            if not inside or any(part in FOLDERS for part in path.relative_to(ROOT).parts[1:]):
                continue
            folder = ".".join(path.parent.relative_to(ROOT).parts)
            package = folder if top == "gatecert" else f"gatecert.{folder}"
            assert any(path.match(pattern) for pattern in patterns.get(package, ())), path


@pytest.mark.parametrize("name", FOLDERS)
def test_a_checkout_sees_the_folder_through_a_relative_link(name: str) -> None:
    link = ROOT / "gatecert" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..", name)
    assert link.resolve() == ROOT / name


def test_the_bare_names_are_banned(project: dict[str, Any]) -> None:
    banned = project["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(banned) == set(FOLDERS)
    code = "import reports\nfrom operators.records import Edit\n"
    arguments = "check --select TID251 --output-format concise --stdin-filename probe.py -"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments.split()],
        input=code,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stdout.count("TID251") == 2, done.stderr


def test_every_exported_name_is_there() -> None:
    assert sorted(gatecert.__all__) == gatecert.__all__
    for name in gatecert.__all__:
        assert getattr(gatecert, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'operatoin'"):
        _ = gatecert.operatoin


@pytest.mark.parametrize("module", ["gatecert", "gatecert.operators", "gatecert.certificate"])
def test_importing_a_package_costs_no_torch(module: str) -> None:
    code = f"import sys, {module}; print({{'torch', 'triton'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_operation_of_the_readme_can_be_declared() -> None:
    @operation(alpha=Scalar(-2.0, 2.0))
    def scaled_add(x: Tensor["B N"], y: Tensor["B N"], alpha: float) -> Tensor["B N"]:  # noqa: F722
        return x + alpha * y

    assert scaled_add.name == "scaled_add"
    assert scaled_add.dims == ("B", "N")


def test_constraints_pin_versions_that_the_ranges_admit(project: dict[str, Any]) -> None:
    from packaging.requirements import Requirement

    pinned = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (specifier,) = requirement.specifier
            assert specifier.operator == "==", line
            pinned[requirement.name.lower().replace("_", "-")] = specifier.version
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *(r for rs in extras.values() for r in rs)]
    for line in wanted:
        requirement = Requirement(line)
        name = requirement.name.lower().replace("_", "-")
        assert requirement.specifier.contains(pinned[name]), line
