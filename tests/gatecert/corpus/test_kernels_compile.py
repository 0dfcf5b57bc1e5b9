"""Claims about the corpus: every kernel compiles for a real GPU, and the config names them all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.config import CORPUS_CONFIG, load_config
from tests.gatecert.corpus.interpreted import environment

SUBJECTS = load_config(CORPUS_CONFIG).subjects


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compiled.py"))],
        env=environment(TRITON_CACHE_DIR=str(tmp_path_factory.mktemp("triton"))),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_kernel_compiles_for_sm_90_in_every_dtype(subject, compiled):
    mine = [row for row in compiled if row["subject"] == subject.name]
    assert [row["dtype"] for row in mine] == list(subject.dtypes)
    assert all(row["cubin_bytes"] > 0 for row in mine)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_subject_names_the_kernel_that_it_launches(subject, compiled):
    launched = {row["kernel"] for row in compiled if row["subject"] == subject.name}
    assert launched == set(subject.kernels)


def test_every_kernel_of_the_corpus_belongs_to_one_subject():
    written = [
        f"gatecert.corpus.{path.stem}:{name}"
        for path in Path(CORPUS_CONFIG).parent.glob("*.py")
        for name in re.findall(r"@triton\.jit\ndef (\w+)", path.read_text())
    ]
    assert sorted(written) == sorted(name for subject in SUBJECTS for name in subject.kernels)
