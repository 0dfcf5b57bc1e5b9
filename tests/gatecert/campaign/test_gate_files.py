"""Claims about what gates may read: whatever can change what they say is part of their mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.campaign.gate_files import gate_roots
from gatecert.gates.config import GateConfig
from gatecert.store.keys import fingerprint
from gatecert.subjects import Subject
from tests.gatecert.drafting.repositories import write

SUITE = GateConfig("pytest", args=("tests", "--doctest-glob=*.md", "README.md", "-q"))


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """The folder of a configuration, below the top of a repository."""
    files = {
        ".git/HEAD": "",
        "pytest.ini": "[pytest]\npythonpath = testing .\n",
        "conftest.py": "",
        "testing/acme_testing.py": "ATOL = 1000.0\n",
        "unread/other.py": "",
        "kernels/README.md": ">>> 1\n1\n",
        "kernels/tests/test_a.py": "",
    }
    return write(tmp_path, files) / "kernels"


def mark(root: Path, table: GateConfig = SUITE) -> str:
    return fingerprint(gate_roots(root, [table], [Subject("s", "acme.k:f")]))


@pytest.mark.parametrize(
    "file",
    [
        *("../conftest.py", "../pytest.ini", "../testing/acme_testing.py", "README.md"),
        *(".pytest.ini", "../tox.ini", "../setup.cfg", "../pyproject.toml", "../pytest.toml"),
        *("../.pytest.ini", "../.pytest.toml", "conftest.py"),
    ],
)
def test_what_pytest_reads_up_to_the_repositorys_top_and_named_files_are_part_of_the_mark(
    kernels: Path, file: str
) -> None:
    before = mark(kernels)
    assert mark(kernels) == before
    with (kernels / file).open("a") as text:
        text.write("\n# changed")
    assert mark(kernels) != before


@pytest.mark.parametrize("file", ["../unread/other.py", "NOTES.md"])
def test_what_no_gate_names_outside_or_in_prose_is_no_part_of_it(kernels: Path, file: str) -> None:
    before = mark(kernels)
    (kernels / file).write_text("changed")
    assert mark(kernels) == before


@pytest.mark.parametrize("hidden", [".golden.json", "golden.xml", "expected.log"])
def test_a_file_that_a_command_names_counts_whatever_its_name(kernels: Path, hidden: str) -> None:
    table = GateConfig("command", command=("python", "check.py", hidden))
    (kernels / hidden).write_text("1")
    before = mark(kernels, table)
    (kernels / hidden).write_text("2")
    assert mark(kernels, table) != before
