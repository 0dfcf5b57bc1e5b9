"""A drafted configuration runs as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gatecert.errors import ExitCode
from tests.e2e.commands import ROOT, gatecert
from tests.gatecert.drafting import repositories


def team(root: Path) -> Path:
    """The example of a team, without its configuration."""
    shutil.copytree(ROOT / "examples" / "team", root, dirs_exist_ok=True)
    (root / "gatecert.toml").unlink()
    return root


@pytest.mark.parametrize(
    "build",
    [repositories.flat, repositories.src_layout, repositories.in_test_file, team],
    ids=lambda build: build.__name__,
)
def test_the_mutants_of_a_drafted_configuration_can_be_listed(
    tmp_path: Path, build: Callable[[Path], Path]
) -> None:
    build(tmp_path)
    done = gatecert(tmp_path, "init")
    assert done.returncode == ExitCode.MET, done.stderr
    listed = gatecert(tmp_path, "certify", "--list", "--jobs", "1")
    assert listed.returncode == ExitCode.MET, listed.stderr
    assert "drop-store-mask" in listed.stdout


def test_the_command_that_it_names_next_judges_the_tests(tmp_path: Path) -> None:
    repositories.flat(tmp_path)
    last = gatecert(tmp_path, "init").stdout.splitlines()[-1]
    assert last == "Next: gatecert certify --gate tests"
    done = gatecert(
        tmp_path,
        *("certify", "--gate", "tests", "--quick", "--jobs", "1"),
        *("--operator", "wrong-pad-value", "--out", "out"),
    )
    assert done.returncode == ExitCode.MET, done.stderr
    (path,) = (tmp_path / "out").glob("certificate*.json")
    assert json.loads(path.read_text())["kill_rate"]["n"] > 0


def test_a_subject_without_an_operation_is_judged_by_the_tests_alone(tmp_path: Path) -> None:
    repositories.two_kernels(tmp_path)
    text = (tmp_path / "kernels.py").read_text().replace("leaky_relu", "scaled")
    (tmp_path / "kernels.py").write_text(text)
    test = (
        "import torch\nfrom kernels import scaled\n\n\ndef test_scaled():\n"
        "    x = torch.linspace(-2, 2, 70)\n"
        "    want = torch.nn.functional.leaky_relu(x, 0.1)\n"
        "    torch.testing.assert_close(scaled(x, 0.1), want)\n"
    )
    (tmp_path / "test_scaled.py").write_text(test)
    assert gatecert(tmp_path, "init").returncode == ExitCode.MET
    # The oracle comes first and has nothing to say of one of the two.
    listed = gatecert(tmp_path, "certify", "--list", "--jobs", "1")
    assert listed.returncode == ExitCode.MET, listed.stderr
    assert "scaled/relu_kernel/drop-store-mask" in listed.stdout
    assert "softmax/row_kernel/drop-store-mask" in listed.stdout
