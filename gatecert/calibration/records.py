"""The file that `gatecert calibrate` writes and an `[oracle.NAME]` reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from gatecert.errors import UsageError
from gatecert.gates.config import OracleConfig, OracleSettings, ToleranceRow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT = 1


class Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Runs that a constant was not fitted on, and how many it rejects: of runs and of kernels.

    `bound` is what that says of other kernels: at 95% confidence the share of which a run is
    rejected is below it (Clopper and Pearson), with the kernel as unit, since runs of one kernel
    are no independent trials.
    """

    runs: int
    rejected: int
    kernels: int
    kernels_rejected: int
    bound: float


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel with all its rewrites, judged by what was fitted on the others alone."""

    kernel: str
    constant: float
    runs: int
    rejected: int


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was fitted for one operation in one dtype, and on what.

    `constant` is `envelope` times the largest need of a run, or the model's floor. The needs'
    quantiles are for the reader: nothing is fitted to one. `held_out` is by what was new in the
    run: its seed, its shape, its recipe.
    """

    operation: str
    dtype: str
    comparator: dict[str, Any]
    constant: float
    kernels: tuple[str, ...]
    controls: int
    cases: int
    runs: int
    elements: int
    median: float
    p95: float
    largest: float
    largest_case: str
    held_out: dict[str, Tried]
    left_out: tuple[LeftOut, ...]

    @property
    def rejected(self) -> int:
        """Runs of correct kernels that it rejects."""
        held_out = sum(tried.rejected for tried in self.held_out.values())
        return held_out + sum(kernel.rejected for kernel in self.left_out)


class Refused(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation in a dtype for which nothing was fitted, and why."""

    operation: str
    dtype: str
    reason: str


class Tolerances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. It holds for the kernels, cases, lane and oracle that its hashes name."""

    format: int
    reviewed: str
    model: str
    envelope: float
    lane: str
    strategy: str
    seeds: tuple[int, ...]
    held_out_seeds: tuple[int, ...]
    gatecert: str
    oracle_sha256: str
    sources_sha256: dict[str, str]
    cases_sha256: str
    torch_left_out: tuple[str, ...] = ()
    """Where torch's own result rounds on the way, and so is no control."""
    row: tuple[Row, ...] = ()
    refused: tuple[Refused, ...] = ()


def read_tolerances(path: Path) -> Tolerances:
    """Read a file of tolerances.

    Raises:
        UsageError: it is missing, no TOML, or not of this format.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; `gatecert calibrate` writes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    if table.get("format") != FORMAT:
        raise UsageError(
            f"{path}: format = {table.get('format')!r}, and this gatecert reads {FORMAT}; "
            "calibrate again"
        )
    try:
        return msgspec.convert(table, Tolerances)
    except msgspec.ValidationError as error:
        said = str(error).replace("$.", "").replace(" - at ", " at ")
        raise UsageError(f"{path}: {said}; calibrate again") from None


def oracle_settings(config: OracleConfig, root: Path) -> OracleSettings:
    """The settings of an `[oracle.NAME]` with its file read in; `root` holds gatecert.toml.

    Raises:
        UsageError: the file is missing or wrong, or nobody has reviewed it.
    """
    if not config.tolerances:
        return OracleSettings(config.strategy, config.comparator, cases=config.cases)
    path = root / config.tolerances
    found = read_tolerances(path)
    if not found.reviewed.strip():
        raise UsageError(
            f"{path}: nobody has reviewed it; read its rows, then write who and when, as in "
            'reviewed = "A. Reader, 2025-01-31"'
        )
    rows = tuple(ToleranceRow(r.operation, r.dtype, r.comparator) for r in found.row)
    return OracleSettings(config.strategy, config.comparator, rows, config.cases)
