"""Takes its whole process down."""

import os
import signal


def gate(candidate):
    os.kill(os.getpid(), signal.SIGSEGV)


def test_dies():
    gate(None)
