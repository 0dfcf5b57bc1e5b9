"""Every gate by name: the oracle, the presets, and the team's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gatecert.errors import UsageError, did_you_mean
from gatecert.gates.base import Gate
from gatecert.gates.built_in import METAMORPHIC, BuiltInGate, built_in_names, strategy_of
from gatecert.gates.callable_gate import CallableGate
from gatecert.gates.command.gate import CommandGate
from gatecert.gates.command.sanitizer import SanitizerGate
from gatecert.gates.config import GateConfig, OracleSettings
from gatecert.gates.records import ORACLE, is_oracle
from gatecert.gates.suite.gate import PytestGate

if TYPE_CHECKING:
    from gatecert.oracle.comparators import Comparator

__all__ = [
    "METAMORPHIC",
    "ORACLE",
    "built_in_names",
    "check_around",
    "check_gate_name",
    "make_gate",
]


def check_gate_name(name: str, configured: Iterable[str]) -> None:
    """Refuse a name that is neither built in nor configured.

    Raises:
        UsageError: it names the nearest gate.
    """
    known = [*built_in_names(), *configured]
    strategy = strategy_of(name)
    if strategy is not None and name not in known:
        from gatecert.oracle.strategies import get_strategy

        get_strategy(strategy)
    elif name not in known:
        hint = did_you_mean(name, known)
        raise UsageError(f"unknown gate {name!r}; {hint}")


def make_gate(
    name: str,
    config: GateConfig | None,
    root: str,
    around: GateConfig | None = None,
    oracle: OracleSettings | None = None,
) -> Gate:
    """The gate called `name`; `root` is the folder of the configuration file.

    `around` is the table of the gate that a sanitizer runs, `oracle` the settings of an oracle
    under another name.

    Raises:
        UsageError: no such gate, a table takes the name of a built-in one, or what it names
            cannot be run.
    """
    if oracle is not None:
        return _named_oracle(name, oracle)
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


def read_comparator(table: dict[str, Any], where: str) -> Comparator:
    """A comparator as it stands in TOML; `where` names the place for errors.

    Raises:
        UsageError: there is no such comparator, or it has no such field or value.
    """
    from gatecert.oracle.comparators import COMPARATORS, Comparator

    known = {kind.__name__: kind for kind in COMPARATORS}
    kind = str(table.get("type", ""))
    if kind not in known:
        hint = did_you_mean(kind, known)
        raise UsageError(f"{where}: type = {kind!r} is no comparator; {hint}")
    fields = known[kind].__struct_fields__
    for key in table:
        if key not in ("type", *fields):
            hint = did_you_mean(key, fields, otherwise="it has")
            raise UsageError(f"{where}: {kind} has no {key!r}; {hint}")
    try:
        found: Comparator = msgspec.convert(table, Comparator)
    except (msgspec.ValidationError, UsageError) as error:
        raise UsageError(f"{where}: {error}") from None
    return found


def _named_oracle(name: str, settings: OracleSettings) -> Gate:
    from gatecert.gates.oracle import OracleGate
    from gatecert.oracle.case import parse_case
    from gatecert.oracle.strategies import get_strategy
    from gatecert.oracle.tolerance import RoundingInterval

    get_strategy(settings.strategy)
    listed = tuple(dict.fromkeys(parse_case(text) for text in settings.cases))
    usual: Comparator = RoundingInterval()
    if settings.comparator:
        usual = read_comparator(settings.comparator, f"gate {name!r}, comparator")
    rows = {
        (row.operation, row.dtype): read_comparator(
            row.comparator, f"gate {name!r}, tolerance of {row.operation} in {row.dtype}"
        )
        for row in settings.rows
    }
    return OracleGate(name, settings.strategy, usual, rows, listed)


def _configured(name: str, config: GateConfig, root: Path, around: GateConfig | None) -> Gate:
    folder = (root / config.rootdir).resolve()
    if config.kind == "pytest":
        cuda = config.runs_compiled
        return PytestGate(
            name, config.args, folder, config.baseline_runs, fresh=cuda, interpret=not cuda
        )
    if config.kind == "callable":
        return CallableGate(name, config.callable, folder)
    if config.kind == "command":
        return CommandGate(name, config, folder)
    check_around(name, config, {config.around: around} if around else {})
    assert around is not None
    return SanitizerGate(name, config, around, (root / around.rootdir).resolve())
