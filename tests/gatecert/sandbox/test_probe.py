"""Claims about probes: what an original that cannot be run is said to lack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gatecert.errors import ExitCode
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Failed, GateRef, ProbeRequest
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A warm server."""
    with Server() as warm:
        yield warm


def test_an_operation_with_other_arguments_than_the_entrys_is_suspected_itself(
    server: Server,
) -> None:
    subject = Subject("s", "kernels_softmax:softmax", "layer_norm", import_paths=(str(TESTDATA),))
    request = ProbeRequest(subject, GateRef("oracle", str(TESTDATA)))
    (failed,) = [event for event in server.ask(request) if isinstance(event, Failed)]
    assert failed.exit_code == ExitCode.ENVIRONMENT_FAILED
    assert failed.message == (
        "subject 's': operation 'layer_norm' calls the entry with x, weight, bias, eps, and it "
        "raised TypeError: softmax() takes 1 positional argument but 4 were given; is it the "
        "right operation in gatecert.toml?"
    )
