"""Signals as a person's shell leaves them."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """For `preexec_fn`: heed Ctrl-C, which a run in the background inherits as ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
