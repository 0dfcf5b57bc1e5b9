"""`[gate.NAME]` of gatecert.toml: a gate that the team brings."""

from __future__ import annotations

from typing import Literal

import msgspec


class GateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured gate.

    `pytest`: `args` as on pytest's command line, run in `rootdir` (relative to the
    configuration file). `callable`: `callable` names `package.module:function`, called as
    `function(candidate_entry)`, which returns a bool or a `Verdict`; `rootdir` is put on
    `sys.path` to import it.
    """

    kind: Literal["pytest", "callable"]
    args: tuple[str, ...] = ()
    rootdir: str = "."
    callable: str = ""

    def __post_init__(self) -> None:
        """A key of the other kind is a mistake, not a preference."""
        if self.kind == "callable":
            module, colon, function = self.callable.partition(":")
            if not (module and colon and function):
                raise ValueError("a callable gate needs callable = 'package.module:function'")
            if self.args:
                raise ValueError("args belongs to a gate of kind 'pytest'")
        elif self.callable:
            raise ValueError("callable belongs to a gate of kind 'callable'")
