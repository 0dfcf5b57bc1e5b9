"""Claims about a user's mistakes: one clear line, the right exit code, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.errors import ExitCode
from tests.e2e.commands import gatecert, project

GOOD = "kernels_softmax:softmax"


def said(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and the one line that is the error."""
    done = gatecert(folder, *arguments, "--out", str(folder / "out"))
    assert "Traceback" not in done.stderr + done.stdout
    return done.returncode, done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--gate", "oracel"), "unknown gate 'oracel'; did you mean 'oracle'?"),
        (("--operator", "drop-lod-mask"), "did you mean 'drop-load-mask'?"),
        (("--subject", "sotfmax"), "unknown subject 'sotfmax'; did you mean 'softmax'?"),
        (("--only", "softmax/none/such"), "no mutant 'softmax/none/such'"),
        (("--config", "absent.toml"), "absent.toml"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_an_unknown_name_is_a_usage_error_with_a_hint(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, line = said(project(tmp_path, GOOD), "certify", "--jobs", "1", *arguments)
    assert code == ExitCode.USAGE
    assert says in line


def test_a_typo_in_the_configuration_is_a_usage_error(tmp_path: Path) -> None:
    folder = project(tmp_path, GOOD, more='dtype = ["float32"]\n')
    code, line = said(folder, "certify", "--jobs", "1")
    assert code == ExitCode.USAGE
    assert "did you mean 'dtypes'?" in line


@pytest.mark.parametrize(
    ("entry", "code", "says"),
    [
        ("no_such_package.kernels:softmax", ExitCode.ENVIRONMENT_FAILED, "no module named"),
        ("kernels_fail_on_import:softmax", ExitCode.ENVIRONMENT_FAILED, "licence server"),
        ("kernels_softmax:sofmax", ExitCode.USAGE, "has no 'sofmax'"),
        ("kernels_none:softmax", ExitCode.NOTHING_SCORED, "no"),
    ],
)
def test_an_entry_that_cannot_be_certified_says_why(
    tmp_path: Path, entry: str, code: ExitCode, says: str
) -> None:
    found, line = said(project(tmp_path, entry), "certify", "--jobs", "1")
    assert found == code
    assert says in line


def test_a_wrong_operation_is_a_usage_error(tmp_path: Path) -> None:
    code, line = said(project(tmp_path, GOOD, operation="sofmax"), "certify", "--jobs", "1")
    assert code == ExitCode.USAGE
    assert "did you mean 'softmax'?" in line


def test_an_unsupported_triton_is_an_environment_failure(tmp_path: Path) -> None:
    fake = tmp_path / "fake" / "triton"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text('__version__ = "2.1.0"\n')
    folder = project(tmp_path / "project", GOOD)
    text = (folder / "gatecert.toml").read_text()
    (folder / "gatecert.toml").write_text(text)
    code, line = _with_path(folder, tmp_path / "fake")
    assert code == ExitCode.ENVIRONMENT_FAILED
    assert "2.1.0" in line
    assert "3.6" in line


def _with_path(folder: Path, first: Path) -> tuple[int, str]:
    import os
    import subprocess
    import sys

    from tests.e2e.commands import LIMIT_S, environment

    env = environment()
    env["PYTHONPATH"] = f"{first}{os.pathsep}{env['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "gatecert", "certify", "--out", str(folder / "out")],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done.returncode, done.stderr.strip().splitlines()[-1]
