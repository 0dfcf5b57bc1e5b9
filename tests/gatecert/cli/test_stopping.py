"""Claims about signals: the first one interrupts, the second waits, both are undone at the end."""

from __future__ import annotations

import os
import signal

import pytest

from gatecert.cli.stopping import stoppable
from gatecert.errors import INTERRUPTED, TERMINATED


@pytest.mark.parametrize(
    ("first", "status"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)]
)
def test_the_first_signal_interrupts_and_the_second_lets_that_end(
    first: signal.Signals, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stoppable() as stops:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), first)
        os.kill(os.getpid(), signal.SIGTERM)
        assert "once more ends it at once" in capfd.readouterr().err
    assert stops.exit_status == status
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_an_interrupt_of_another_making_counts_as_ctrl_c() -> None:
    with stoppable() as stops:
        pass
    assert stops.exit_status == INTERRUPTED
