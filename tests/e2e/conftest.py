"""Warm servers for all runs in this process; those in processes of their own start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.commands import environment
from tests.warm import WarmServers


@pytest.fixture(scope="session")
def warm_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmServers]:
    """What all runs of a session share."""
    servers = WarmServers(tmp_path_factory.mktemp("warm"))
    yield servers
    servers.close()


@pytest.fixture(scope="module", autouse=True)
def _warm(warm_servers: WarmServers) -> Iterator[None]:
    """Runs in this process are warm."""
    with warm_servers.stand_in(environment()):
        yield
