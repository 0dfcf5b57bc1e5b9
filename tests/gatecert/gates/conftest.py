"""One warm server for all tests of gates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gatecert.gates.config import LIBRARIES
from gatecert.sandbox.client import Server
from tests.gatecert.gates.asking import Judge


@pytest.fixture(scope="package")
def judge() -> Iterator[Judge]:
    """A judge with a warm server behind it, which has in memory what a run's has."""
    with Server(LIBRARIES["pytest"]) as server:
        yield Judge(server)
