"""From options to a plan: which configuration, subjects, gates and operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.config import CORPUS_CONFIG, Config, find_config, load_config
from gatecert.errors import UsageError, did_you_mean
from gatecert.subjects import Subject

if TYPE_CHECKING:
    from gatecert.campaign.plan import Plan
    from gatecert.cli.options import Part
    from gatecert.operators.records import Operator
    from gatecert.store import Shard

ORACLE = "oracle"
YARDSTICK = "allclose-one-shape"


def read_config(path: Path | None) -> Config:
    """The configuration named, found in the current folder, or the built-in corpus.

    Says on stderr which one it is, so that nobody mistakes the corpus for their own kernels.
    """
    chosen = path or find_config(Path.cwd())
    if chosen is None:
        say("no gatecert.toml here: using the built-in corpus")
        return load_config(CORPUS_CONFIG)
    say(f"configuration: {chosen}")
    return load_config(chosen)


def make_plan(
    config: Config,
    *,
    subject_names: Sequence[str] = (),
    gate_names: Sequence[str] = (),
    operator_names: Sequence[str] = (),
    seed: int = 0,
    quick: bool = False,
    jobs: int = 1,
    only: Sequence[str] = (),
    matrix: bool = False,
    shard: Shard | None = None,
    part: Part | None = None,
) -> Plan:
    """A checked plan; `part` holds the options that leave mutants out.

    Raises:
        UsageError: a subject, gate or operator is not known; names the nearest.
    """
    from gatecert.campaign.plan import Plan, gate_refs
    from gatecert.gates.registry import check_around, check_gate_name, make_gate

    names = choose_gates(config, gate_names)
    for name in names:
        check_gate_name(name, (*config.gates, *config.oracles))
    refs = gate_refs(names, config.gates, config.root, config.oracles)
    for ref in refs:
        if ref.config is not None:
            check_around(ref.name, ref.config, config.gates)
        make_gate(ref.name, ref.config, ref.root, ref.around, ref.oracle)
    return Plan(
        root=Path(config.root),
        subjects=choose_subjects(config, subject_names),
        gates=refs,
        operators=choose_operators(operator_names),
        config=config,
        seed=seed,
        quick=quick,
        jobs=jobs,
        only=tuple(only),
        matrix=matrix,
        shard=shard,
        whole=not subject_names and not operator_names,
        since=part.in_diff if part else "",
        sample=part.sample if part else 0,
        time_budget_s=part.time_budget_s if part else 0.0,
        ignore=config.ignore,
    )


def choose_gates(config: Config, names: Sequence[str]) -> tuple[str, ...]:
    """The gate to certify first, and those that stand beside it.

    By default the oracle is certified, with the configured gates beside it, or with the weak
    gate that most kernels get where none is configured. Beside another gate the oracle is the
    yardstick.
    """
    if names:
        return tuple(dict.fromkeys((*names, ORACLE)))
    # A sanitizer needs a GPU: it is run where it is asked for.
    beside = [name for name, table in config.gates.items() if table.kind != "sanitizer"]
    return (ORACLE, *(name for name in (beside or (YARDSTICK,)) if name != ORACLE))


def choose_subjects(config: Config, names: Sequence[str]) -> tuple[Subject, ...]:
    """The named subjects in the configuration's order, or all."""
    known = {subject.name: subject for subject in config.subjects}
    check_names("subject", names, known)
    return tuple(s for s in config.subjects if not names or s.name in names)


def choose_operators(names: Sequence[str]) -> tuple[Operator, ...]:
    """The named operators in the catalogue's order, or all."""
    from gatecert.operators.registry import all_operators, get_operator

    wanted = {get_operator(name).name for name in names}
    return tuple(o for o in all_operators() if not names or o.name in wanted)


def check_names(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise a `UsageError` for the first unknown name, with the nearest or all known ones."""
    known = tuple(known)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, otherwise="known are")
            raise UsageError(f"unknown {what} {name!r}; {hint}")


def write_file(path: Path, text: str, *, option: str = "--out") -> None:
    """Write a whole file or leave the old one: never half of it. `option` named the place.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; choose another {option}") from None


def say(message: str) -> None:
    """A line for the person, on stderr: stdout is for results."""
    click.echo(f"gatecert: {message}", err=True)
