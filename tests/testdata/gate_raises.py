"""Breaks down before it has an opinion."""

import pytest


def gate(candidate):
    raise KeyError("no such reference file")


@pytest.fixture
def reference():
    raise KeyError("no such reference file")


def test_needs_the_reference(reference):
    pass
