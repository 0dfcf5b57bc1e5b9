"""Fine with a right kernel; asks for more memory than there is on a wrong one."""

import kernels_softmax
from gate_compares import gate as compares


def gate(candidate):
    return compares(candidate) or bool(bytearray(1 << 46))


def test_has_memory():
    assert gate(kernels_softmax.softmax)
