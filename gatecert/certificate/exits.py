"""What a certificate says to the shell."""

from __future__ import annotations

from gatecert.certificate.records import Certificate, Counts
from gatecert.config import Require
from gatecert.errors import ExitCode
from gatecert.statistics import wilson
from gatecert.wording import count


def exit_code(certificate: Certificate, require: Require) -> ExitCode:
    """The gravest thing the certificate shows: a figure counts only if what it rests on holds.

    An internal contradiction voids everything; a failed subject or a control without a verdict
    leaves the baseline open; a rejected control makes kills cheap; without a scored mutant
    there is no rate to hold against a requirement. A diff without a mutant that could be judged
    here is no failure: nothing was changed that this run is about. Where no profile plants any,
    controls and adversaries are what is scored.
    """
    if certificate.contradictions:
        return ExitCode.INTERNAL
    if certificate.controls.failed or any(subject.failed for subject in certificate.subjects):
        return ExitCode.ENVIRONMENT_FAILED
    if certificate.controls.rejected:
        return ExitCode.CONTROL_REJECTED
    if certificate.selection.since and not _could_be_judged(certificate.mutants):
        return ExitCode.MET
    if certificate.mutants.scored == 0 and (plants(certificate) or not _judged(certificate)):
        return ExitCode.NOTHING_SCORED
    return ExitCode.REQUIREMENT_NOT_MET if unmet(certificate, require) else ExitCode.MET


def unmet(certificate: Certificate, require: Require) -> list[str]:
    """Every bound of `[require]` that the chosen gate misses, one line each.

    Of a sample, or what a time budget reached, the lower end of the rate's interval must reach
    the bound: too few scored mutants cannot meet it, however many of them were killed.
    """
    gate, sampled = certificate.gate, certificate.selection.sampled
    missed: list[str] = []
    if certificate.selection.since and not _could_be_judged(certificate.mutants):
        return missed
    if not plants(certificate):
        # There is no rate to hold against a bound; the adversaries are all that can be missed.
        require = Require(adversaries=certificate.adversaries.total > 0)
    if require.kill_rate is not None:
        why = _short(certificate.mutants, require.kill_rate, sampled)
        missed += [f"{gate}: kill_rate {why}"] if why else []
    for name, bound in require.classes.items():
        group = certificate.by_class.get(name)
        counts = group.mutants if group else Counts()
        why = _not_run(counts, bound, certificate) or _short(counts, bound, sampled)
        missed += [f"{gate}: class {name} {why}"] if why else []
    adversaries = certificate.adversaries
    if require.adversaries and adversaries.accepted:
        names = ", ".join(adversaries.accepted_ids)
        missed.append(f"{gate}: {adversaries.accepted} adversaries accepted ({names}), required 0")
    if require.adversaries and not adversaries.total:
        missed.append(f"{gate}: no adversary was judged, required all, and none accepted")
    if certificate.against is not None:
        missed += [
            f"{change.gate}: {change.id} is {change.after}, and was {change.before} before"
            for change in certificate.against.changes
            if change.what == "verdict"
        ]
    return missed


def plants(certificate: Certificate) -> bool:
    """Were bugs to be planted in any subject?"""
    return any(subject.planted for subject in certificate.subjects)


def _judged(certificate: Certificate) -> int:
    return certificate.controls.runs + certificate.adversaries.total


def _short(counts: Counts, bound: float, sampled: bool) -> str:
    """How the kill rate of some mutants falls short of a bound; "" if it does not."""
    rate = wilson(counts.killed, counts.scored)
    required = f"required {_percent(bound)}"
    if rate.value is None or rate.value < bound:
        return f"is {_percent(rate.value)}, {required}"
    if sampled and rate.low is not None and rate.low < bound:
        return (
            f"is {_percent(rate.value)} of {rate.n} sampled, which proves {_percent(rate.low)} "
            f"only, {required}: raise --sample or --time-budget"
        )
    return ""


def _not_run(counts: Counts, bound: float, certificate: Certificate) -> str:
    """That the sample or the time budget left out all of some mutants; "" if it did not."""
    if counts.scored or not counts.not_run:
        return ""
    required = f"required {_percent(bound)}"
    if certificate.selection.not_reached:
        missed = count(counts.not_run, "mutant")
        return f"is unknown ({missed} not run), {required}: raise --sample or --time-budget"
    return f"is unknown (no mutant of it is in the sample), {required}: raise --sample"


def _could_be_judged(mutants: Counts) -> bool:
    """Is there a mutant that neither its code, its label nor a person excludes?"""
    died = mutants.crashed + mutants.timeout
    unanswered = mutants.unreported + mutants.inconclusive + mutants.not_run
    return mutants.scored + died + unanswered > 0


def _percent(value: float | None) -> str:
    return "unknown (nothing scored)" if value is None else f"{value:.1%}"
