"""Claims about `pythonpath` in pytest's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.gates.suite.python_path import python_path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\npythonpath = testing\n"),
        (".pytest.ini", "[pytest]\naddopts = --x=%d\npythonpath =\n    testing\n"),
        ("tox.ini", "[pytest]\npythonpath = testing\n"),
        ("setup.cfg", "[tool:pytest]\npythonpath = testing\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = "testing"\n'),
        ("pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["testing"]\n'),
        ("pytest.toml", '[pytest]\npythonpath = ["testing"]\n'),
    ],
)
def test_it_is_found_in_every_kind_of_settings(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert python_path(tmp_path / name) == ((tmp_path / "testing").resolve(),)


@pytest.mark.parametrize(
    ("name", "text"),
    [("pytest.ini", "no section"), ("pyproject.toml", "= ["), ("tox.ini", "[tox]\n"), ("a.py", "")],
)
def test_what_cannot_be_read_names_nothing(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert python_path(tmp_path / name) == ()
    assert python_path(tmp_path / "gone.ini") == ()
