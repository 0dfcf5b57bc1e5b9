"""Correct code that a gate rejects, and what that says of its kills."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.certificate.records import GateScore, Rejection
from gatecert.gates.records import is_oracle
from gatecert.mutants.records import original
from gatecert.wording import count, listed


def rejected_originals(score: GateScore) -> dict[str, Rejection]:
    """The rejections of originals, by subject: there the gate's kills prove nothing."""
    return {subject: one for one in _rejected(score) if (subject := _subject_of_original(one.id))}


def proves_nothing(score: GateScore, subject: str = "") -> bool:
    """Does the gate reject the original of that subject, or of all that have a mutant?"""
    rejected = rejected_originals(score)
    if subject:
        return subject in rejected
    return bool(rejected) and score.by_subject.keys() <= rejected.keys()


def doubt_lines(score: GateScore) -> Iterator[str]:
    """A sentence for each original that the gate rejects, and one for all benign rewrites."""
    originals = rejected_originals(score)
    for subject, rejection in originals.items():
        yield _of_original(score.gate, subject, rejection)
    # Who rejects an original must reject what differs from it by a rounding.
    rewrites = [one for one in _rejected(score) if one.id.partition("/")[0] not in originals]
    if rewrites:
        names = listed([one.id for one in rewrites], 2)
        what = count(len(rewrites), "correct rewrite")
        yield f"gate {score.gate!r} rejects {what} of kernels: {names}"


def _of_original(gate: str, subject: str, rejection: Rejection) -> str:
    where = f" on {rejection.case}" if rejection.case else ""
    why = ": ".join(filter(None, [rejection.reason.value.replace("_", " "), rejection.detail]))
    said = (
        f"gate {gate!r} rejects the original of {subject!r}{where}{f' ({why})' if why else ''}, "
        "so its kills there prove nothing: "
    )
    if not is_oracle(gate):
        return f"{said}either the kernel is wrong or the gate is"
    replay = f"; `gatecert replay '{rejection.case}' --subject {subject}` shows it"
    return (
        f"{said}either the kernel is wrong or the declared dtypes and layouts are broader than "
        f"its contract{replay if rejection.case else ''}"
    )


def _rejected(score: GateScore) -> Iterator[Rejection]:
    return (one for one in score.controls.rejections if one.outcome == "rejected")


def _subject_of_original(candidate: str) -> str:
    """The subject whose original it is; "" of a rewrite."""
    subject = candidate.partition("/")[0]
    return subject if candidate == original(subject).id else ""
