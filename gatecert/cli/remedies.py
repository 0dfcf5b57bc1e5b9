"""`gatecert remedies`: what to add to a gate so that it kills what it missed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options
from gatecert.gates.config import LIBRARIES

if TYPE_CHECKING:
    from gatecert.campaign.plan import Plan
    from gatecert.certificate.records import Certificate, GateScore
    from gatecert.remedies.records import SmallestSet
    from gatecert.sandbox.protocol import GateRef
    from gatecert.subjects import Subject
    from gatecert.witness.records import Hunt


@click.command("remedies", short_help="Find what to add to a gate so that it kills more.")
@click.argument("mutants", metavar="[MUTANT]...", nargs=-1)
@options.one_gate_option
@click.option(
    "--write",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the cases there: a table for gatecert.toml and a test module per subject.",
)
@click.option(
    "--budget-runs",
    type=click.IntRange(min=0),
    default=60,
    show_default=True,
    help="Of a MUTANT: runs to find its simplest case.",
)
@options.config_option
@options.subject_option
@options.json_option
@options.jobs_option
@options.out_option
@options.fresh_option
def command(
    mutants: tuple[str, ...],
    gate_names: tuple[str, ...],
    folder: Path | None,
    budget_runs: int,
    config_path: Path | None,
    subject_names: tuple[str, ...],
    as_json: bool,
    jobs: int,
    out: Path,
    fresh: bool,
) -> int:
    """Find the smallest set of cases that kills every survivor with a witness, and prove it.

    Of the survivors of the certificate in --out: a witness is the case on which the oracle rejected
    it, or one that `certify --explain` or `gatecert hunt` has found. The set is run once more with
    other values, on survivors and controls. Writes remedies.json in --out.

    Of each MUTANT (ids or globs) the simplest case on which it shows, as a table of gatecert.toml,
    a test and a script, each run on original and mutant.
    """
    import msgspec

    from gatecert.campaign.plan import gate_refs
    from gatecert.campaign.remedying import smallest_set
    from gatecert.cli.certificates import read_certificate
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.setup import check_out, make_plan, read_config, say, write_file
    from gatecert.errors import ExitCode
    from gatecert.mutants.suppression import names_mutant
    from gatecert.remedies.records import SmallestSet
    from gatecert.remedies.witnesses import untreated, witnesses_of
    from gatecert.reports.remedies import remedy_lines
    from gatecert.store import Scope, recording

    check_out(out)
    certificate = read_certificate(out).certificate
    score = _score_of(certificate, gate_names, out)
    survivors = [
        one
        for one in score.survivors
        if (not subject_names or one.subject in subject_names)
        and (not mutants or any(names_mutant(wanted, one.id) for wanted in mutants))
    ]
    hunts = _hunts(out / "hunts.json", score.gate)
    witnesses = witnesses_of(survivors, hunts)
    if not witnesses:
        say(f"no survivor of {score.gate} has a witness: `gatecert hunt --gate {score.gate}` looks")
        return int(ExitCode.NOTHING_SCORED)
    config = read_config(config_path)
    plan = make_plan(config, gate_names=("oracle",), only=tuple(sorted(witnesses)), jobs=jobs)
    if mutants:
        (gate,) = gate_refs((score.gate,), config.gates, config.root, config.oracles)
        return _one_by_one(plan, gate, witnesses, budget_runs, as_json)
    scope = Scope(
        "remedies",
        config=str(Path(config.path).resolve()),
        gates=(score.gate,),
        subjects=tuple(dict.fromkeys(subject_names)),
        fresh=fresh,
    )
    with recording(out, scope) as record, shown_progress() as progress:
        treatment = smallest_set(plan, witnesses, record, progress)
        record.finish()
    asked = [g for name, g in score.by_subject.items() if name in (subject_names or (name,))]
    found = SmallestSet(
        gate=score.gate,
        survivors=len(survivors),
        with_witness=len(witnesses),
        scored=sum(group.mutants.scored for group in asked),
        killed=sum(group.mutants.killed for group in asked),
        cases=treatment.cases,
        held_out=treatment.held_out,
        untreated=untreated(survivors, witnesses, hunts),
    )
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    write_file(out / "remedies.json", text)
    if as_json:
        sys.stdout.write(text)
    else:
        click.echo("\n".join(remedy_lines(found)))
    if folder is not None:
        say(f"cases: {_write(folder, found, plan.subjects)}")
    say(f"remedies: {out / 'remedies.json'}")
    return int(ExitCode.CONTROL_REJECTED if found.held_out.rejected else ExitCode.MET)


def _one_by_one(
    plan: Plan, gate: GateRef, witnesses: Mapping[str, str], budget_runs: int, as_json: bool
) -> int:
    """The simplest case of each mutant in every form, proven; 2 where one has none that kills."""
    import msgspec

    from gatecert.campaign.progress import Silent
    from gatecert.campaign.proving import proven
    from gatecert.campaign.run import plan_campaign
    from gatecert.campaign.selection import select
    from gatecert.campaign.shards import candidate_of
    from gatecert.campaign.supervise import server_pool
    from gatecert.campaign.tolerating import parting_tolerances
    from gatecert.cli.minimising import MinimiseRequest, minimise, watch_on_stderr
    from gatecert.errors import ExitCode
    from gatecert.reports.remedies import text_lines

    found = []
    with server_pool(plan.jobs, LIBRARIES["pytest"]) as pool:
        planned, _ = select(plan, plan_campaign(plan, pool, Silent()))
        for subject in planned:
            for mutant in subject.run.mutants:
                case = witness = witnesses[mutant.id]
                if budget_runs:
                    request = MinimiseRequest(
                        subject=subject.run.subject,
                        candidate=candidate_of(mutant, subject.texts),
                        case=witness,
                        budget_runs=budget_runs,
                    )
                    smaller = minimise(request, watch_on_stderr)
                    case = witness if smaller.snapshot else smaller.case
                remedy = proven(plan, pool, subject, mutant, witness, case)
                parting = parting_tolerances(plan, pool, subject, mutant, gate)
                found.append(msgspec.structs.replace(remedy, tolerances=parting))
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        click.echo("\n\n".join("\n".join(text_lines(one)) for one in found))
    killed = all(any(text.kills for text in one.texts) for one in found)
    return int(ExitCode.MET if killed else ExitCode.REQUIREMENT_NOT_MET)


def _score_of(certificate: Certificate, names: tuple[str, ...], out: Path) -> GateScore:
    """The gate of that name; by default the one that was certified.

    Raises:
        UsageError: it did not judge there.
    """
    from gatecert.errors import UsageError, did_you_mean
    from gatecert.reports.tables import gates_of

    scores = {score.gate: score for score in gates_of(certificate)}
    name = names[0] if names else certificate.gate
    if name not in scores:
        raise UsageError(f"{out}: gate {name!r} did not judge there; {did_you_mean(name, scores)}")
    return scores[name]


def _hunts(path: Path, gate: str) -> list[Hunt]:
    """Hunts outside the cases of that gate, where `gatecert hunt` has left some."""
    import msgspec

    from gatecert.cli.setup import say
    from gatecert.witness.records import Hunt

    if not path.is_file():
        return []
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[Hunt])
    except msgspec.MsgspecError as error:
        say(f"{path} is left out: {error}")
        return []
    return [hunt for hunt in found if hunt.gate == gate]


def _write(folder: Path, found: SmallestSet, subjects: Sequence[Subject]) -> Path:
    """The cases as a table for gatecert.toml, and as a test module for each subject."""
    from gatecert.cli.setup import write_file
    from gatecert.remedies.texts import config_text, pytest_text

    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "added.toml", config_text(one.case for one in found.cases))
    for subject in subjects:
        cases = [one.case for one in found.cases if one.subject == subject.name]
        if cases:
            said = f"Inputs on which mutants of {subject.name} show that {found.gate} accepted."
            path = folder / f"test_added_{subject.name}.py"
            write_file(path, pytest_text(subject, cases, said))
    return folder
