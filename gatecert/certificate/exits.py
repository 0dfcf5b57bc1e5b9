"""What a certificate says to the shell."""

from __future__ import annotations

from gatecert.certificate.records import Certificate
from gatecert.config import Require
from gatecert.errors import ExitCode


def exit_code(certificate: Certificate, require: Require) -> ExitCode:
    """The gravest thing the certificate shows: a figure counts only if what it rests on holds.

    An internal contradiction voids everything; a failed subject or a control without a verdict
    leaves the baseline open; a rejected control makes kills cheap; without a scored mutant
    there is no rate to hold against a requirement.
    """
    if certificate.contradictions:
        return ExitCode.INTERNAL
    if certificate.controls.failed or any(subject.failed for subject in certificate.subjects):
        return ExitCode.ENVIRONMENT_FAILED
    if certificate.controls.rejected:
        return ExitCode.CONTROL_REJECTED
    if certificate.mutants.scored == 0:
        return ExitCode.NOTHING_SCORED
    return ExitCode.REQUIREMENT_NOT_MET if unmet(certificate, require) else ExitCode.MET


def unmet(certificate: Certificate, require: Require) -> list[str]:
    """Every bound of `[require]` that the chosen gate misses, one line each."""
    missed = []
    value = certificate.kill_rate.value
    if require.kill_rate is not None and (value is None or value < require.kill_rate):
        missed.append(f"kill_rate is {_percent(value)}, required {_percent(require.kill_rate)}")
    for name, bound in require.classes.items():
        group = certificate.by_class.get(name)
        rate = group.kill_rate if group else None
        if rate is None or rate < bound:
            missed.append(f"class {name} is {_percent(rate)}, required {_percent(bound)}")
    if require.adversaries and certificate.adversaries.accepted:
        missed.append(f"{certificate.adversaries.accepted} adversaries accepted, required 0")
    return missed


def _percent(value: float | None) -> str:
    return "unknown (nothing scored)" if value is None else f"{value:.1%}"
