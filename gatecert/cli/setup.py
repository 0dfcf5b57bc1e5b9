"""From options to a plan: which configuration, subjects, gates and operators."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.config import CORPUS_CONFIG, Config, find_config_above, load_config
from gatecert.errors import UsageError, did_you_mean
from gatecert.gates.records import ORACLE
from gatecert.results_folder import strangers
from gatecert.subjects import Subject
from gatecert.wording import listed

if TYPE_CHECKING:
    from gatecert.campaign.plan import Plan
    from gatecert.cli.options import Part
    from gatecert.operators.records import Operator
    from gatecert.store import Shard

YARDSTICK = "allclose-one-shape"
_GLOB = re.compile(r"[*?[]")


def read_config(path: Path | None) -> Config:
    """The configuration named, found in the current folder or above it in the same repository,
    or the built-in corpus.

    Says on stderr which one it is, so that nobody mistakes the corpus for their own kernels.
    """
    chosen = path or find_config_above(Path.cwd())
    if chosen is None:
        say("no gatecert.toml here or above: using the built-in corpus")
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
    with_oracle: bool = True,
) -> Plan:
    """A checked plan; `part` holds the options that leave mutants out.

    Raises:
        UsageError: a subject, gate, operator or mutant is not known; names the nearest. Or git
            knows no such revision.
        EnvironmentFailure: pytest is missing, and a gate needs it.
    """
    check_selection(config, subject_names, gate_names, operator_names, only)
    from gatecert.campaign.plan import Plan, gate_refs
    from gatecert.gates.registry import check_around, make_gate
    from gatecert.gates.suite.gate import check_pytest

    chosen = choose_gates(config, gate_names, with_oracle=with_oracle)
    refs = gate_refs(chosen, config.gates, config.root, config.oracles)
    for ref in refs:
        if ref.config is not None:
            check_around(ref.name, ref.config, config.gates)
        make_gate(ref.name, ref.config, ref.root, ref.around, ref.oracle)
        if ref.config is not None and ref.config.kind == "pytest":
            check_pytest(ref.name)
    root = Path(config.root)
    if part and part.in_diff:
        from gatecert.campaign.changes import check_revision

        check_revision(part.in_diff, root)
    return Plan(
        root=root,
        subjects=choose_subjects(config, subject_names, only),
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
        accepted=config.accepted,
    )


def choose_gates(
    config: Config, names: Sequence[str], *, with_oracle: bool = True
) -> tuple[str, ...]:
    """The gate to certify first, and those that stand beside it.

    By default the oracle is certified, with the configured gates beside it, or with the weak
    gate that most kernels get where none is configured. Beside another gate the oracle is the
    yardstick, unless it is to be left out.

    Raises:
        UsageError: the oracle is to be left out, and was named or is the only gate.
    """
    if not with_oracle and ORACLE in names:
        raise UsageError("--gate oracle and --no-oracle exclude each other; leave one out")
    # What needs a GPU is run where it is asked for.
    configured = [name for name, table in config.gates.items() if not table.runs_compiled]
    if not with_oracle and not (names or configured):
        raise UsageError(
            f"--no-oracle leaves no gate: name one with --gate, or declare one in {config.path}"
        )
    if not with_oracle:
        return tuple(dict.fromkeys(names or configured))
    if names:
        return tuple(dict.fromkeys((*names, ORACLE)))
    return (ORACLE, *(name for name in (configured or (YARDSTICK,)) if name != ORACLE))


def check_selection(
    config: Config,
    subject_names: Sequence[str] = (),
    gate_names: Sequence[str] = (),
    operator_names: Sequence[str] = (),
    only: Sequence[str] = (),
) -> None:
    """Refuse what cannot be meant, before anything slow is imported or started.

    Of a mutant's id only subject and operator can be known; the rest shows when it is planted.

    Raises:
        UsageError: a subject, gate, operator or mutant is not known; names the nearest.
    """
    from gatecert.gates.registry import check_gate_name

    subjects = [subject.name for subject in choose_subjects(config, subject_names)]
    for name in gate_names:
        check_gate_name(name, (*config.gates, *config.oracles))
    for mutant in only:
        _check_mutant(mutant, subjects)
    if operator_names or only:  # The operators bring LibCST, which takes a second.
        exact = (one for one in only if not is_glob(one))
        choose_operators((*operator_names, *map(_operator_of, exact)))


def choose_subjects(
    config: Config, names: Sequence[str], only: Sequence[str] = ()
) -> tuple[Subject, ...]:
    """The named subjects in the configuration's order, or all; of these those with the mutants
    `only`, if there are any."""
    known = {subject.name: subject for subject in config.subjects}
    check_names("subject", names, known)
    wanted = [s for s in config.subjects if s.name in set(names or known)]
    return tuple(s for s in wanted if not only or any(_may_be_of(s.name, one) for one in only))


def is_glob(text: str) -> bool:
    """Has it wildcards?"""
    return _GLOB.search(text) is not None


def subject_of(mutant_id: str) -> str:
    """The subject in a mutant's id, `SUBJECT/FUNCTION/OPERATOR/NUMBER`."""
    return mutant_id.partition("/")[0]


def _may_be_of(subject: str, mutant: str) -> bool:
    """Can an id or glob name mutants of the subject, by what stands before its first wildcard?"""
    start = _GLOB.split(mutant, maxsplit=1)[0]
    if start == mutant:
        return subject_of(mutant) == subject
    return f"{subject}/".startswith(start) or start.startswith(f"{subject}/")


def _operator_of(mutant_id: str) -> str:
    """The operator in a mutant's id, without its variant."""
    return mutant_id.split("/")[-2].partition(".")[0]


def _check_mutant(mutant_id: str, subjects: Sequence[str]) -> None:
    if is_glob(mutant_id) and any(_may_be_of(name, mutant_id) for name in subjects):
        return
    try:
        check_names("subject", (subject_of(mutant_id),), subjects)
    except UsageError as error:
        raise UsageError(f"no mutant {mutant_id!r}: {error}") from None
    if len(mutant_id.split("/")) != 4:
        raise UsageError(
            f"no mutant {mutant_id!r}: write SUBJECT/FUNCTION/OPERATOR/NUMBER, as "
            "`gatecert mutants list` prints it"
        )


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


def check_out(folder: Path) -> None:
    """Refuse a folder of the user's own files, before anything runs: results there would be in
    the way of those who read it.

    Raises:
        UsageError: names some of the files.
    """
    found = strangers(folder)
    if found:
        raise UsageError(
            f"--out {folder}: holds what is not gatecert's ({listed(found, 1)}); name a folder "
            "that is new, empty or of an earlier run"
        )
    check_writable(folder / ".", "--out")


def check_writable(path: Path, option: str) -> None:
    """Refuse a file that cannot be written there, before anything runs; writes nothing.

    Raises:
        UsageError: says what is in the way.
    """
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{path}: Permission denied; choose another {option}")
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not above.is_dir():
        raise UsageError(f"{path}: {above} is no folder; choose another {option}")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: {above} cannot be written; choose another {option}")


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
