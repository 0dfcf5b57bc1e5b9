"""Moves to another folder, as a test that forgets to come back does."""

import os
import tempfile

import kernels_softmax
from gate_compares import gate as compares


def gate(candidate):
    os.chdir(tempfile.mkdtemp())
    right = compares(candidate)
    os.chdir("/")
    return right


def test_moves():
    assert gate(kernels_softmax.softmax)
