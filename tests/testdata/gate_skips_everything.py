"""Skips its only test."""

import kernels_softmax
import pytest


@pytest.mark.skip(reason="needs eight GPUs")
def test_softmax():
    assert kernels_softmax.softmax
