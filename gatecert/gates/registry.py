"""Every gate by name: the oracle, the presets, and the team's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from gatecert.errors import UsageError, did_you_mean
from gatecert.gates.base import Gate
from gatecert.gates.built_in import BuiltInGate, built_in_names
from gatecert.gates.callable_gate import CallableGate
from gatecert.gates.command.gate import CommandGate
from gatecert.gates.command.sanitizer import SanitizerGate
from gatecert.gates.config import GateConfig
from gatecert.gates.records import ORACLE, is_oracle
from gatecert.gates.suite.gate import PytestGate

__all__ = ["ORACLE", "built_in_names", "check_around", "check_gate_name", "make_gate"]


def check_gate_name(name: str, configured: Iterable[str]) -> None:
    """Refuse a name that is neither built in nor configured.

    Raises:
        UsageError: it names the nearest gate.
    """
    known = [*built_in_names(), *configured]
    if name not in known:
        hint = did_you_mean(name, known)
        raise UsageError(f"unknown gate {name!r}; {hint}")


def make_gate(
    name: str, config: GateConfig | None, root: str, around: GateConfig | None = None
) -> Gate:
    """The gate called `name`; `root` is the folder of the configuration file.

    `around` is the table of the gate that a sanitizer runs.

    Raises:
        UsageError: no such gate, a table takes the name of a built-in one, or what it names
            cannot be run.
    """
    if config is not None:
        if name in built_in_names() or is_oracle(name):
            raise UsageError(f"gate {name!r} is built in; give [gate.{name}] another name")
        return _configured(name, config, Path(root), around)
    check_gate_name(name, ())
    return BuiltInGate(name)


def check_around(name: str, config: GateConfig, tables: Mapping[str, GateConfig]) -> None:
    """Refuse a sanitizer around a gate that is not there or cannot be run by one.

    Raises:
        UsageError: it names the nearest gate.
    """
    fit = [other for other, table in tables.items() if table.kind in ("pytest", "command")]
    if config.kind != "sanitizer" or config.around in fit:
        return
    near = difflib.get_close_matches(config.around, fit, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UsageError(
        f"gate {name!r}: around = {config.around!r} is no gate of kind pytest or command{hint}"
    )


def _configured(name: str, config: GateConfig, root: Path, around: GateConfig | None) -> Gate:
    folder = (root / config.rootdir).resolve()
    if config.kind == "pytest":
        return PytestGate(name, config.args, folder, config.baseline_runs)
    if config.kind == "callable":
        return CallableGate(name, config.callable, folder)
    if config.kind == "command":
        return CommandGate(name, config, folder)
    check_around(name, config, {config.around: around} if around else {})
    assert around is not None
    return SanitizerGate(name, config, around, (root / around.rootdir).resolve())
