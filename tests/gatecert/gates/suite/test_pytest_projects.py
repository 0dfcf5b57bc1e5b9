"""Claims about projects of every usual shape: the suite judges the mutant that it imports."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gatecert.gates.records import GateOutcome
from gatecert.mutants.adversaries import ADVERSARIES
from gatecert.mutants.records import CandidateKind
from gatecert.sandbox.client import Server
from tests.gatecert.gates.asking import TESTDATA, Judge
from tests.gatecert.gates.suites import KERNEL, TESTS, assert_sound, judge_project, write


def test_a_src_layout_with_fixtures_and_helpers_in_conftest(judge: Judge, tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
            "src/acme/__init__.py": "from acme.ops.softmax import softmax\n",
            "src/acme/ops/__init__.py": "",
            "src/acme/ops/softmax.py": KERNEL,
            "tests/conftest.py": """
                import pytest
                import torch

                @pytest.fixture(scope="session")
                def reference():
                    return lambda x: torch.softmax(x.double(), dim=1).float()

                @pytest.fixture(params=[1, 3])
                def rows(request):
                    return request.param
                """,
            "tests/test_softmax.py": """
                import pytest
                import torch
                from acme import softmax

                @pytest.fixture(autouse=True)
                def seeded():
                    torch.manual_seed(0)

                @pytest.mark.parametrize("columns", [4, 7])
                @pytest.mark.parametrize("shift", [0.0, -90.0], ids=["near", "far"])
                def test_softmax(rows, columns, shift, reference):
                    x = torch.randn(rows, columns) + shift
                    torch.testing.assert_close(softmax(x), reference(x))
                """,
        },
    )
    outcome = judge_project(
        judge.server,
        folder,
        "acme:softmax",
        "tests",
        import_paths=("src",),
        adversaries=ADVERSARIES,
    )
    assert_sound(outcome)
    assert outcome.original.cases == 8
    assert outcome.original.kernels == ("acme.ops.softmax:softmax_kernel",)


def test_what_tests_of_another_kernel_compare_is_no_evidence(judge: Judge, tmp_path: Path) -> None:
    other = KERNEL.replace("softmax_kernel", "other_kernel").replace("def softmax(", "def other(")
    files = {
        "mine.py": KERNEL,
        "others.py": other,
        "conftest.py": "",
        "test_both.py": f"""
import pytest
from mine import softmax
from others import other
{TESTS}
@pytest.mark.xfail(strict=False)
def test_other():
    x = torch.rand(3, 4)
    torch.testing.assert_close(other(x), torch.softmax(x, 1), atol=0.05, rtol=0.05)
""",
    }
    outcome = judge_project(judge.server, write(tmp_path, files), "mine:softmax")
    assert_sound(outcome)
    for verdict in (outcome.original, *outcome.of(CandidateKind.ADVERSARY)):
        assert verdict.evidence is not None and verdict.evidence.tally is not None
        assert {one.atol for one in verdict.evidence.compared} <= {1e-5}
        assert {one.kernel for one in verdict.evidence.launches} <= {"mine:softmax_kernel"}
        assert not any("other" in test.test for test in verdict.evidence.tests)
        assert verdict.evidence.tally.xpassed == 0
    assert outcome.original.evidence is not None and outcome.original.evidence.compared
    assert "xpassed" in outcome.original.detail


def test_a_namespace_package(judge: Judge, tmp_path: Path) -> None:
    files = {
        "acme/kernels/softmax.py": KERNEL,
        "tests/test_softmax.py": f"from acme.kernels.softmax import softmax\n{TESTS}",
        "pytest.ini": "[pytest]\npythonpath = .\n",
    }
    folder = write(tmp_path, files)
    assert_sound(judge_project(judge.server, folder, "acme.kernels.softmax:softmax", "tests"))


@pytest.mark.parametrize(
    ("mode", "in_package", "operation"),
    [
        ("prepend", False, "softmax"),
        ("prepend", True, None),
        ("importlib", False, None),
        ("importlib", True, "softmax"),
    ],
)
def test_a_kernel_in_the_test_file_itself(
    judge: Judge, tmp_path: Path, mode: str, in_package: bool, operation: str | None
) -> None:
    folder = write(tmp_path, {"tests/test_softmax.py": KERNEL + TESTS})
    if in_package:
        write(tmp_path, {"tests/__init__.py": ""})
    outcome = judge_project(
        judge.server,
        folder,
        "test_softmax:softmax",
        *("tests", f"--import-mode={mode}"),
        import_paths=("tests",),
        operation=operation,
    )
    assert_sound(outcome)
    assert {kernel.name for kernel in outcome.planned.run.kernels} == set(outcome.original.kernels)


WRAPPED = """
import torch
import triton
import triton.language as tl

@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (1, 2)], key=["n_cols"]
)
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n_cols"])})
@triton.jit
def softmax_kernel"""


def test_a_kernel_under_stacked_autotune_and_heuristics(judge: Judge, tmp_path: Path) -> None:
    head, _, body = KERNEL.partition("@triton.jit\ndef softmax_kernel")
    text = WRAPPED + body.replace(", BLOCK=triton.next_power_of_2(n_cols))", ")")
    assert head and "next_power_of_2(n_cols)" not in text
    files = {"kernels.py": text, "test_softmax.py": f"from kernels import softmax\n{TESTS}"}
    outcome = judge_project(judge.server, write(tmp_path, files), "kernels:softmax")
    assert_sound(outcome)


OPERATORS_OF_TORCH = pytest.mark.parametrize(
    ("decorator", "wrap"),
    [
        ("custom_op", "{}["),
        ("triton_op", "torch.library.wrap_triton({})["),
    ],
    ids=["custom_op", "triton_op"],
)


def operator_of_torch(text: str, entry: str, kernel: str, decorator: str, wrap: str) -> str:
    """A module's text with its launcher registered as `torch.ops.acme.<entry>`."""
    registered = f'@torch.library.{decorator}("acme::{entry}", mutates_args=())\ndef {entry}('
    return text.replace(f"def {entry}(", registered).replace(f"{kernel}[", wrap.format(kernel))


@OPERATORS_OF_TORCH
def test_a_launcher_that_is_an_operator_of_torch(
    judge: Judge, tmp_path: Path, decorator: str, wrap: str
) -> None:
    text = operator_of_torch(KERNEL, "softmax", "softmax_kernel", decorator, wrap)
    tests = f"from kernels import softmax\n{TESTS}\n" + (
        "def test_by_its_name():\n"
        "    x = torch.linspace(-3, 3, 12).reshape(4, 3)\n"
        "    torch.testing.assert_close(torch.ops.acme.softmax(x), torch.softmax(x, dim=1))\n"
    )
    files = {"kernels.py": text, "test_softmax.py": tests}
    outcome = judge_project(judge.server, write(tmp_path, files), "kernels:softmax")
    assert_sound(outcome)


LAUNCHER_OPERATORS = ("uninitialised-buffer", "grid-rounded-down", "argument-not-forwarded")
BY_NAME_ALONE = """
import kernels
import torch

torch.use_deterministic_algorithms(True)  # what nobody set is NaN

def test_leaky_relu():
    x = torch.linspace(-3, 3, 420).reshape(70, 6).t()[::3]
    expected = torch.nn.functional.leaky_relu(x, 0.3)
    torch.testing.assert_close(torch.ops.acme.leaky_relu(x, 0.3), expected)
"""


@OPERATORS_OF_TORCH
def test_bugs_in_a_launcher_that_is_an_operator_of_torch_are_what_its_name_runs(
    judge: Judge, tmp_path: Path, decorator: str, wrap: str
) -> None:
    text = (TESTDATA / "kernels_zeroed_buffer.py").read_text()
    text = operator_of_torch(text, "leaky_relu", "add_leaky_kernel", decorator, wrap)
    outcome = judge_project(
        judge.server,
        write(tmp_path, {"kernels.py": text, "test_leaky_relu.py": BY_NAME_ALONE}),
        "kernels:leaky_relu",
        operation="leaky_relu",
        operators=(*LAUNCHER_OPERATORS, "wrong-stride"),
    )
    run = outcome.planned.run
    assert [launcher.qualname for launcher in run.launchers] == ["leaky_relu"]
    assert Counter((m.kernel, m.operator) for m in run.mutants) == {
        ("leaky_relu", "uninitialised-buffer"): 1,
        ("leaky_relu", "grid-rounded-down"): 1,
        ("leaky_relu", "argument-not-forwarded"): 3,
        ("add_leaky_kernel", "wrong-stride"): 4,
    }
    assert_sound(outcome)
    for mutant in run.mutants:
        verdict = outcome.verdicts[mutant.id]
        assert (verdict.outcome, verdict.loaded) == (GateOutcome.REJECTED, True), mutant.diff


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="needs pip")
@pytest.mark.parametrize("editable", [True, False], ids=["editable", "regular"])
def test_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editable: bool
) -> None:
    project = write(
        tmp_path / "project",
        {
            "pyproject.toml": """
                [build-system]
                requires = ["setuptools"]
                build-backend = "setuptools.build_meta"

                [project]
                name = "acme-kernels-of-a-test"
                version = "1.0"

                [tool.setuptools]
                package-dir = { "acme_of_a_test" = "lib" }
                packages = ["acme_of_a_test"]
                """,
            "lib/__init__.py": "",
            "lib/softmax.py": KERNEL,
            "tests/test_softmax.py": f"from acme_of_a_test.softmax import softmax\n{TESTS}",
        },
    )
    prefix = tmp_path / "environment"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
        + ["--no-index", "--disable-pip-version-check", "--prefix", str(prefix)]
        + (["--editable"] if editable else [])
        + [str(project)],
        check=True,
    )
    (site,) = prefix.rglob("site-packages")
    start = write(
        tmp_path / "start", {"sitecustomize.py": f"import site\nsite.addsitedir({str(site)!r})\n"}
    )
    paths = [str(start), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    installed = project / "lib" if editable else site / "acme_of_a_test"
    with Server() as server:
        outcome = judge_project(
            server, project, "acme_of_a_test.softmax:softmax", "tests", import_paths=()
        )
    assert_sound(outcome)
    (kernel,) = outcome.planned.run.kernels
    assert Path(kernel.path).parent.resolve() == installed.resolve()


def test_a_mutant_of_a_device_function_meets_the_tests_of_its_callers(
    judge: Judge, tmp_path: Path
) -> None:
    helper = "@triton.jit\ndef total(x):\n    return tl.sum(x, axis=0)\n\n\n"
    text = KERNEL.replace("x / tl.sum(x, axis=0)", "x / total(x)")
    head, jit, body = text.partition("@triton.jit\n")
    files = {
        "kernels.py": head + helper + jit + body,
        "test_softmax.py": f"from kernels import softmax\n{TESTS}"
        "\n\ndef test_of_nothing():\n    assert True\n",
    }
    outcome = judge_project(judge.server, write(tmp_path, files), "kernels:softmax")
    assert_sound(outcome)
    assert {verdict.cases for verdict in outcome.of(CandidateKind.MUTANT)} <= {1, 2, 3}


def test_a_subject_whose_suite_launches_other_kernels_only_has_unreached_mutants(
    judge: Judge, tmp_path: Path
) -> None:
    files = {
        "kernels.py": KERNEL,
        "others.py": KERNEL,
        "test_softmax.py": f"from others import softmax\n{TESTS}",
    }
    outcome = judge_project(judge.server, write(tmp_path, files), "kernels:softmax")
    mutants = outcome.of(CandidateKind.MUTANT)
    assert {verdict.outcome for verdict in mutants} == {GateOutcome.ACCEPTED}
    assert {verdict.detail for verdict in mutants} == {"no test launches kernels:softmax_kernel"}
    # Here the entry is never called, so there is no verdict on what stands in its place.
    adversaries = outcome.of(CandidateKind.ADVERSARY)
    assert {verdict.loaded for verdict in adversaries} == {False}
