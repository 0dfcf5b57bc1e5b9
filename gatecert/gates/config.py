"""`[gate.NAME]` and `[oracle.NAME]` of gatecert.toml: gates of the team's, and settings of ours."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

TOOLS = ("memcheck", "racecheck", "initcheck")
"""Tools of Compute Sanitizer that say no of their own."""
_MOST_RUNS = 20
_KEYS = {
    "pytest": ("args", "rootdir", "lane", "baseline_runs", "exclude"),
    "callable": ("callable", "rootdir", "baseline_runs", "exclude"),
    "command": (
        *("command", "rootdir", "lane", "verdict", "accept", "reject", "timeout_s"),
        *("baseline_runs", "exclude"),
    ),
    "sanitizer": ("around", "tools", "timeout_s"),
}
"""The keys of each kind, beside `kind`."""
LIBRARIES: dict[str, tuple[str, ...]] = {
    # What pytest and its plugins import, and `torch.testing.assert_close` at its first call.
    "pytest": ("pytest", "hypothesis", "numpy.testing", "torch.distributed.tensor"),
}
"""By kind what most gates of it import, where it is installed: three seconds of their first run,
unless it is there before. Nothing of it is ever under test."""


class GateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configured gate.

    `pytest`: `args` as on pytest's command line. `callable`: `callable` names
    `package.module:function`, called as `function(candidate_entry)`, which returns a bool or a
    `Verdict`. `command`: `command` is run for each candidate. `sanitizer`: Compute Sanitizer
    around another gate of kind pytest or command.
    """

    kind: Literal["pytest", "callable", "command", "sanitizer"]
    """What sort of gate it is."""
    args: tuple[str, ...] = ()
    """Of pytest: its arguments."""
    rootdir: str = "."
    """The folder that the gate runs in, relative to this file; a callable is imported from it."""
    lane: Literal["interpreter", "cuda"] = "interpreter"
    """Of a pytest or command: where kernels run, in Triton's interpreter on the CPU or compiled on
    a GPU, where each candidate costs a fresh process."""
    callable: str = ""
    """Of a callable: the function, as `package.module:function`."""
    command: tuple[str, ...] = ()
    """Of a command: the executable and its arguments; `python` is the one that runs gatecert."""
    verdict: Literal["exit", "json"] = "exit"
    """Of a command: it speaks by its exit status, or by a line of JSON, its last on stdout that
    has `"verdict": "accept"` or `"reject"`, and a `"detail"` if it likes."""
    accept: tuple[int, ...] = (0,)
    """Of a command: exit statuses that mean yes."""
    reject: tuple[int, ...] = (1,)
    """Of a command: exit statuses that mean no; any other is a failure of the gate."""
    timeout_s: float | None = None
    """Of a command or sanitizer: seconds for one run; by default ten times what the original
    takes, and 20 s at least."""
    baseline_runs: int = 3
    """How often the gate must accept the original before any mutant is run."""
    around: str = ""
    """Of a sanitizer: the name of the gate that it runs."""
    tools: tuple[str, ...] = TOOLS
    """Of a sanitizer: its tools."""
    exclude: tuple[str, ...] = ()
    """Files and folders, relative to this file, that are read in place: gates run in a private
    copy of the project, and these are linked there."""

    def __post_init__(self) -> None:
        """A key of another kind is a mistake, not a preference."""
        for name, default in zip(_OPTIONAL, _DEFAULTS, strict=True):
            if getattr(self, name) != default and name not in _KEYS[self.kind]:
                kinds = " or ".join(repr(kind) for kind, keys in _KEYS.items() if name in keys)
                raise ValueError(f"{name} belongs to a gate of kind {kinds}")
        if not 1 <= self.baseline_runs <= _MOST_RUNS:
            raise ValueError(f"baseline_runs must be 1 to {_MOST_RUNS}, not {self.baseline_runs}")
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"timeout_s must be more than 0, not {self.timeout_s}")
        check = {
            "callable": self._check_callable,
            "command": self._check_command,
            "sanitizer": self._check_sanitizer,
        }.get(self.kind)
        if check is not None:
            check()

    @property
    def runs_compiled(self) -> bool:
        """Do its kernels run on a GPU?"""
        return self.lane == "cuda" or self.kind == "sanitizer"

    @property
    def starts_processes(self) -> bool:
        """Does each candidate cost a fresh process?"""
        return self.runs_compiled or self.kind == "command"

    @property
    def runs_on_original(self) -> int:
        """How often the original is judged; a sanitizer is too slow for more than once."""
        return 1 if self.kind == "sanitizer" else self.baseline_runs

    def _check_callable(self) -> None:
        module, colon, function = self.callable.partition(":")
        if not (module and colon and function):
            raise ValueError("a callable gate needs callable = 'package.module:function'")

    def _check_command(self) -> None:
        if not self.command or not self.command[0]:
            raise ValueError("a command gate needs command = ['executable', 'argument', ...]")
        if self.verdict == "json":
            if (self.accept, self.reject) != ((0,), (1,)):
                raise ValueError("accept and reject are exit statuses; verdict = 'json' has none")
            return
        both = sorted(set(self.accept) & set(self.reject))
        if both:
            raise ValueError(f"exit status {both[0]} is in accept and in reject")
        for name in ("accept", "reject"):
            statuses = getattr(self, name)
            if not statuses or not all(0 <= status <= 255 for status in statuses):
                raise ValueError(f"{name} must list exit statuses, 0 to 255")

    def _check_sanitizer(self) -> None:
        if not self.around:
            raise ValueError("a sanitizer gate needs around = 'NAME' of a pytest or command gate")
        for tool in self.tools:
            if tool not in TOOLS:
                raise ValueError(f"{tool!r} is not one of the tools {', '.join(TOOLS)}")
        if not self.tools:
            raise ValueError(f"name at least one of the tools {', '.join(TOOLS)}")


class OracleConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The oracle under a name, `--gate oracle-NAME`: what it tries, and how wrong an output may be.

    Reference and guards are those of the oracle itself.
    """

    strategy: str = "certify"
    """Which shapes and values it tries."""
    cases: tuple[str, ...] = ()
    """Cases as reports print them: it tries these alone, each subject those of its operation."""
    comparator: dict[str, Any] = {}
    """What it allows, as `{ type = "AllClose", atol = 1e-3, rtol = 1e-2 }`; by default the
    rounding-interval test with its own constants."""
    tolerances: str = ""
    """A file of `gatecert calibrate`, relative to this one: its rows go before `comparator` for
    their operations and dtypes."""


class ToleranceRow(msgspec.Struct, frozen=True):
    """What the outputs of an operation in a dtype are compared with."""

    operation: str
    dtype: str
    comparator: dict[str, Any]


class OracleSettings(msgspec.Struct, frozen=True):
    """An `[oracle.NAME]` with the rows of its file read in."""

    strategy: str = "certify"
    comparator: dict[str, Any] = {}
    rows: tuple[ToleranceRow, ...] = ()
    cases: tuple[str, ...] = ()


ORACLE_PREFIX = "oracle-"
"""`[oracle.NAME]` is the gate `oracle-NAME`."""

_OPTIONAL = GateConfig.__struct_fields__[1:]
_DEFAULTS = GateConfig.__struct_defaults__
