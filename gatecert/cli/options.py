"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from gatecert.cli.publishing import Publishing
from gatecert.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def available_cores() -> int:
    """Cores this process may use, which in a container are fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Configuration; by default gatecert.toml, or [tool.gatecert] in pyproject.toml, here or "
    "above in the repository, else the built-in corpus.",
)
subject_option = click.option(
    "--subject", "subject_names", multiple=True, help="Only this subject (repeatable)."
)
gate_option = click.option(
    "--gate",
    "gate_names",
    multiple=True,
    help="Gate to certify; further ones stand beside it. Default: oracle.",
)


def _one(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> Any:
    if len(names) > 1:
        raise UsageError(
            f"{context.info_name} takes one --gate, not {len(names)}: run it once for each of "
            f"{', '.join(names)}"
        )
    return names


one_gate_option = click.option(
    "--gate", "gate_names", multiple=True, callback=_one, help="The gate. Default: oracle."
)
no_oracle_option = click.option(
    "--no-oracle",
    is_flag=True,
    help="Only your own gates, without the oracle as their yardstick: about half the time.",
)
operator_option = click.option(
    "--operator", "operator_names", multiple=True, help="Only this operator (repeatable)."
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else."
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=available_cores,
    show_default="all cores",
    help="Candidates judged at a time.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all inputs."
)
quick_option = click.option("--quick", is_flag=True, help="A few small inputs per subject.")
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("gatecert-out"),
    show_default=True,
    help="Folder for results.",
)
profile_option = click.option(
    "--profile",
    metavar="NAME",
    help="By where the kernel comes from: llm-generated, hand-optimised, autotune-config, "
    "toolkit-upgrade or vendor-call (docs/profiles.md).",
)
against_option = click.option(
    "--against",
    "against_path",
    type=click.Path(path_type=Path),
    metavar="CERT",
    help="Hold controls against an earlier run's certificate; takes its seed and inputs.",
)
fresh_option = click.option(
    "--fresh", is_flag=True, help="Judge and compile all anew, whatever earlier runs found."
)


_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Part:
    """Options that leave mutants out: empty or 0 where all are meant."""

    in_diff: str = ""
    sample: int = 0
    time_budget_s: float = 0.0

    def check(self, *, shard: bool, list_only: bool) -> None:
        """Refuse what cannot go together.

        Raises:
            UsageError: names both options.
        """
        if self.time_budget_s and shard:
            raise UsageError(
                "--time-budget with --shard: a shard that leaves something out cannot be merged"
            )
        if self.sample and list_only:
            raise UsageError("--sample with --list: a sample is drawn of what compiles; run it")


def read_duration(ctx: click.Context, param: click.Parameter, text: str) -> float:
    """`90s`, `15m`, `1h30m` in seconds, and 0 of nothing; fails as a wrong option does."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh])", text)
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if text and ("".join(number + unit for number, unit in parts) != text or not seconds):
        raise click.BadParameter(f"{text!r}: write a time as in 90s, 15m or 1h30m", ctx, param)
    return seconds


def part_options(command: Command) -> Command:
    """--in-diff, --sample and --time-budget, handed over as `part`."""

    @functools.wraps(command)
    def grouped(
        *arguments: Any, in_diff: str, sample: int | None, time_budget: float, **others: Any
    ) -> Any:
        return command(*arguments, part=Part(in_diff, sample or 0, time_budget), **others)

    return _with_options(
        cast(Command, grouped),
        click.option(
            "--in-diff",
            default="",
            metavar="REV",
            help="Only mutants on lines changed since the commit where REV was left.",
        ),
        click.option(
            "--sample",
            type=click.IntRange(min=1),
            metavar="N",
            help="Only N mutants, drawn at random (--seed) over all bug classes.",
        ),
        click.option(
            "--time-budget",
            default="",
            callback=read_duration,
            metavar="TIME",
            help="Start no further mutant after so much judging: 90s, 15m, 1h30m.",
        ),
    )


def publishing_options(command: Command) -> Command:
    """--ratchet, --junit and --annotations, handed over as `publishing`."""

    @functools.wraps(command)
    def grouped(
        *arguments: Any,
        ratchet: Path | None,
        update_ratchet: bool,
        junit: Path | None,
        annotations: bool | None,
        **others: Any,
    ) -> Any:
        publishing = Publishing(junit, annotations, ratchet, update_ratchet)
        return command(*arguments, publishing=publishing, **others)

    file = click.Path(path_type=Path, dir_okay=False)
    return _with_options(
        cast(Command, grouped),
        click.option(
            "--ratchet",
            type=file,
            metavar="FILE",
            help="Fail (exit 2) on a survivor that is not in FILE, or a kill of FILE that is lost.",
        ),
        click.option(
            "--update-ratchet", is_flag=True, help="Write this run's results into --ratchet FILE."
        ),
        click.option("--junit", type=file, metavar="FILE", help="Write JUnit XML."),
        click.option(
            "--annotations/--no-annotations",
            default=None,
            help="Print survivors as GitHub annotations; by default in GitHub Actions only.",
        ),
    )


def _with_options(command: Command, *decorators: Callable[[Command], Command]) -> Command:
    for decorator in reversed(decorators):
        command = decorator(command)
    return command
