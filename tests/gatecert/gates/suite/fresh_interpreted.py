"""Imported into a server, it lets gates of the cuda lane interpret kernels: all is as on a GPU, the
fresh process for each candidate included, but that."""

from __future__ import annotations

from typing import Any

from gatecert.gates import registry
from gatecert.gates.suite.gate import PytestGate


def _interpreting(*args: Any, interpret: bool, **options: Any) -> PytestGate:
    return PytestGate(*args, interpret=True, **options)


registry.PytestGate = _interpreting  # type: ignore[assignment, misc]
