"""Every gate by name: the oracle, the presets, and the team's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from gatecert.errors import UsageError
from gatecert.gates.base import Gate
from gatecert.gates.callable_gate import CallableGate
from gatecert.gates.config import GateConfig
from gatecert.gates.oracle import OracleGate
from gatecert.gates.preset import presets
from gatecert.gates.pytest_gate import PytestGate

ORACLE = "oracle"


def built_in_names() -> tuple[str, ...]:
    """Gates that need no table: the oracle and the presets."""
    return (ORACLE, *(preset.name for preset in presets()))


def check_gate_name(name: str, configured: Iterable[str]) -> None:
    """Refuse a name that is neither built in nor configured.

    Raises:
        UsageError: it names the nearest gate.
    """
    known = [*built_in_names(), *configured]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"unknown gate {name!r}; {hint}")


def make_gate(name: str, config: GateConfig | None, root: str) -> Gate:
    """The gate called `name`; `root` is the folder of the configuration file.

    Raises:
        UsageError: no such gate, or a table takes the name of a built-in one.
    """
    if config is not None:
        if name in built_in_names():
            raise UsageError(f"gate {name!r} is built in; give [gate.{name}] another name")
        folder = (Path(root) / config.rootdir).resolve()
        if config.kind == "pytest":
            return PytestGate(name, config.args, folder)
        return CallableGate(name, config.callable, folder)
    check_gate_name(name, ())
    if name == ORACLE:
        return OracleGate()
    return next(preset for preset in presets() if preset.name == name)
