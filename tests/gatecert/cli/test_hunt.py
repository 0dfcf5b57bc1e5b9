"""Claims about `gatecert hunt` that need no hunt."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.cli import main
from gatecert.errors import ExitCode
from gatecert.results_folder import strangers

MUTANT = "softmax_online/_softmax_online_kernel/drop-load-mask/1-0c0ffe"


def test_without_a_mutant_it_needs_a_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hunt", "--out", str(tmp_path / "new")]) == ExitCode.USAGE
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["softmax_onlin/k/drop-load-mask/1"], "did you mean 'softmax_online'"),
        ([MUTANT, "--gate", "kernelbensh"], "did you mean 'kernelbench'"),
        ([MUTANT, "--gate", "oracle:boundry"], "did you mean 'boundary'"),
        ([MUTANT, "--seconds", "0"], "'--seconds'"),
        ([MUTANT, "--cases", "0"], "'--cases'"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hunt", *arguments, "--out", str(tmp_path)]) == ExitCode.USAGE
    assert says in capsys.readouterr().err


def test_its_results_are_no_strangers_in_a_folder_of_results(tmp_path: Path) -> None:
    (tmp_path / "hunts.json").write_text("[]")
    assert strangers(tmp_path) == []
