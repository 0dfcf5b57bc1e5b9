"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def available_cores() -> int:
    """Cores this process may use, which in a container are fewer than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Configuration; by default ./gatecert.toml, else [tool.gatecert] in ./pyproject.toml, "
    "else the built-in corpus.",
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
fresh_option = click.option(
    "--fresh", is_flag=True, help="Judge and compile all anew, whatever earlier runs found."
)
