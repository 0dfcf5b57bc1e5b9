"""Claims about the corpus: every kernel is right in every dtype, shape and layout it declares."""

from __future__ import annotations

import pytest

from gatecert.config import CORPUS_CONFIG, load_config
from tests.gatecert.corpus.interpreted import run, wrong


@pytest.fixture(scope="module")
def interpreted():
    return run(CORPUS_CONFIG)


@pytest.mark.parametrize(
    "subject", load_config(CORPUS_CONFIG).subjects, ids=lambda subject: subject.name
)
def test_a_kernel_agrees_with_float64(subject, interpreted):
    rows = interpreted[subject.name]
    assert not wrong(rows)
    assert {row["dtype"] for row in rows} == set(subject.dtypes)
    assert len(rows) >= len(subject.dtypes) * (4 + len(subject.layouts))
