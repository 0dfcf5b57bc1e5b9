"""Leaves daemons behind that would outlive it for long: one in a session of its own, one with an
empty environment."""

import os
import subprocess

import kernels_softmax
from gate_compares import gate as compares

SECONDS = os.environ.get("GATE_DAEMON_SECONDS", "600")
"""How long they sleep; also what tells the daemons of one test from another's."""


def gate(candidate):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", SECONDS])
        os._exit(0)
    subprocess.Popen(["/bin/sleep", SECONDS], env={}, start_new_session=True)
    return compares(candidate)


def test_leaves_daemons():
    assert gate(kernels_softmax.softmax)
