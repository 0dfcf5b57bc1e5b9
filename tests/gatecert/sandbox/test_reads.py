"""Claims about what code reads besides its own modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
