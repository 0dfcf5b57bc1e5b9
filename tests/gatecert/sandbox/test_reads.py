"""Claims about what code reads besides its own modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.sandbox.reads import Reads

_CHILD = """
import sys
from gatecert.sandbox.reads import watch_reads
top = sys.argv[1]
reads = watch_reads(lambda path: path.startswith(top))
sys.path.insert(0, top)
import code_that_reads
import shutil; shutil.which("ls")
print(sorted(path.rpartition("/")[2] for path in reads.files([top])), sorted(reads.variables))
"""
_CODE = """
import os
from pathlib import Path
here = Path(__file__).parent
(here / "settings.json").read_text()
(here / "written.txt").write_text("x")
os.environ.get("ACME_SCALE", "1")
os.getenv("ACME_OTHER")
"ACME_THIRD" in os.environ
"""


def test_files_that_are_read_and_variables_that_the_users_code_asks_for_are_seen(
    tmp_path: Path,
) -> None:
    (tmp_path / "code_that_reads.py").write_text(_CODE)
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "unread.json").write_text("{}")
    command = [sys.executable, "-B", "-c", _CHILD, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == (
        "['code_that_reads.py', 'settings.json'] ['ACME_OTHER', 'ACME_SCALE', 'ACME_THIRD']\n"
    )


def test_an_installers_record_of_a_package_in_development_is_no_file_of_the_users(
    tmp_path: Path,
) -> None:
    record, data = tmp_path / "acme.egg-info" / "entry_points.txt", tmp_path / "golden.txt"
    record.parent.mkdir()
    for path in (record, data):
        path.write_text("x")
    found = Reads(opened={str(record), str(data)}).users_files()
    assert (str(data) in found, str(record) in found) == (True, False)


_LOOK = """
import json, sys
from gatecert.sandbox.reads import watch_reads
top = sys.argv[1]
reads = watch_reads(lambda path: path.startswith(top))
sys.path.insert(0, top)
import code_that_reads
import os, glob; os.path.exists(top + "/by_nobody"); glob.glob(top + "/by_nobody/*")
found = [reads.users_files(), reads.users_folders(), reads.users_sought(), reads.asked()]
print(json.dumps([[name.removeprefix(top + "/") for name in names] for names in found]))
"""
_START = """
import glob, os, shutil, tempfile
from pathlib import Path
here = Path(__file__).parent
"""


@pytest.mark.parametrize(
    ("code", "folders", "sought", "variables"),
    [
        ("sorted(here.glob('cases/*.json'))", ["cases"], [], []),
        ("glob.glob(f'{here}/cases/*.json')", ["cases"], [], []),
        ("os.listdir(here / 'cases')", ["cases"], [], []),
        ("list(os.scandir(os.fsencode(here / 'cases')))", ["cases"], [], []),
        ("os.path.exists(here / 'flag')", [], ["flag"], []),
        ("(here / 'flag').is_file()", [], ["flag"], []),
        ("os.access(here / 'flag', os.R_OK)", [], ["flag"], []),
        ("os.path.lexists(here / 'flag')", [], ["flag"], []),
        ("os.path.realpath(here / 'flag')", [], [], []),
        ("os.environb.get(b'ACME')", [], [], ["ACME"]),
        ("Path(here / 'made').mkdir(); os.listdir(here / 'made')", [], [], []),
        ("(here / 'made').write_text(''); (here / 'made').exists()", [], [], []),
        ("(here / 'cases').mkdir(exist_ok=True); os.listdir(here / 'cases')", ["cases"], [], []),
        ("os.chdir(here); os.listdir()", ["."], [], []),
        ("shutil.copystat(here / 'cases', here / 'cases', follow_symlinks=False)", [], None, []),
        ("os.path.exists('a\\0b')", [], [], []),
    ],
)
def test_listings_and_existence_tests_of_the_users_code_are_seen(
    tmp_path: Path,
    code: str,
    folders: list[str],
    sought: list[str] | None,
    variables: list[str],
) -> None:
    (tmp_path / "code_that_reads.py").write_text(f"{_START}{code}\n")
    (tmp_path / "cases").mkdir()
    command = [sys.executable, "-B", "-c", _LOOK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, listed, looked_for, asked = json.loads(done.stdout)
    assert [name.removeprefix(f"{tmp_path}") or "." for name in listed] == folders
    assert asked == variables
    if sought is not None:
        # A glob asks for the folders that it goes through.
        through = {"cases", str(tmp_path)}
        assert [name for name in looked_for if name not in through] == sought


def test_a_file_that_could_not_be_opened_is_sought(tmp_path: Path) -> None:
    code = "try: open(here / 'golden.json')\nexcept OSError: pass\n"
    (tmp_path / "code_that_reads.py").write_text(_START + code)
    command = [sys.executable, "-B", "-c", _LOOK, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(said)[2] == ["golden.json"]
