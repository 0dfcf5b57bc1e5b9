"""Says no to everything."""

import kernels_softmax


def gate(candidate):
    return False


def test_says_no():
    assert gate(kernels_softmax.softmax), "this gate never says yes"
