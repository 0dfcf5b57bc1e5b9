"""Fine with a right kernel; takes its process down on a wrong one."""

import os
import signal

import kernels_softmax
from gate_compares import gate as compares


def gate(candidate):
    if not compares(candidate):
        os.kill(os.getpid(), signal.SIGSEGV)
    return True


def test_lives():
    assert gate(kernels_softmax.softmax)
