"""Claims about the corpus: every kernel compiles for a real GPU, and the config names them all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.mutants.discover import find_kernels
from tests.gatecert.corpus.interpreted import environment

SUBJECTS = load_config(CORPUS_CONFIG).subjects
CALLED = {
    callee
    for path in Path(CORPUS_CONFIG).parent.glob("*.py")
    for kernel in find_kernels(f"gatecert.corpus.{path.stem}", str(path), path.read_text())[0]
    for callee in kernel.callees
}
"""Device functions: kernels call them, nobody launches them."""


def launched_by(subject):
    return [kernel for kernel in subject.kernels if kernel not in CALLED]


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
    rows = compiled[subject.name]
    assert not [row["raised"] for row in rows if "raised" in row]
    for kernel in launched_by(subject):
        # An autotuned kernel has a row for every configuration.
        compiled_for = [row["dtype"] for row in rows if row["kernel"] == kernel]
        assert list(dict.fromkeys(compiled_for)) == list(subject.dtypes)
    assert all(row["cubin_bytes"] > 0 for row in rows)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_subject_names_the_kernels_that_it_launches(subject, compiled):
    launched = {row.get("kernel") for row in compiled[subject.name]}
    assert launched == set(launched_by(subject))


def test_every_kernel_of_the_corpus_belongs_to_one_subject():
    written = [
        f"gatecert.corpus.{path.stem}:{name}"
        for path in Path(CORPUS_CONFIG).parent.glob("*.py")
        for name in re.findall(r"@triton\.jit\ndef (\w+)", path.read_text())
    ]
    assert sorted(written) == sorted(name for subject in SUBJECTS for name in subject.kernels)
