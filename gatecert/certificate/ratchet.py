"""A ratchet: what each gate killed and missed once, which later runs may only improve on.

The file is for people to review: one mutant a line, sorted. A run fails by a mutant that survives
and is not known to, or that was killed there and now survives; never by a rate. A duplicate is
listed with what became of the mutant whose code it has, so that a run of a part, which may not
see the other one, knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from gatecert.campaign.records import Status
from gatecert.certificate.records import Certificate, Result
from gatecert.errors import UsageError

FORMAT = 1
"""Raised when a key changes its meaning or goes."""

_NO_VERDICT = frozenset({Status.CRASHED, Status.TIMEOUT, Status.UNREPORTED, Status.INCONCLUSIVE})


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one gate did, by mutant id, sorted."""

    survived: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()


class Ratchet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file: what is known of each gate."""

    gates: dict[str, Known] = {}
    format: int = FORMAT


class Held(msgspec.Struct, frozen=True):
    """A run held against a ratchet. The first two fail it; the others are for people to know."""

    new_survivors: tuple[str, ...] = ()
    lost_kills: tuple[str, ...] = ()
    now_killed: tuple[str, ...] = ()
    """Known survivors that the gate kills now: update the file to hold them."""
    new_kills: tuple[str, ...] = ()
    """Killed, and not in the file."""
    unanswered: tuple[str, ...] = ()
    """Killed there, and now without a verdict that counts."""
    gone: tuple[str, ...] = ()
    """In the file, and no longer planted; a run of a part cannot tell."""

    @property
    def failures(self) -> tuple[str, ...]:
        """A line for each mutant that fails the run."""
        return (
            *(f"new survivor, not in the ratchet: {name}" for name in self.new_survivors),
            *(f"lost kill, killed in the ratchet: {name}" for name in self.lost_kills),
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """A line for each kind of change that fails nothing."""
        kinds = (
            (self.now_killed, "known survivors that are killed now"),
            (self.new_kills, "new and killed"),
            (self.unanswered, "killed in the ratchet, without a verdict that counts now"),
            (self.gone, "no longer planted"),
        )
        return tuple(f"{what} ({len(names)}): {_some(names)}" for names, what in kinds if names)


def parse_ratchet(path: str, text: str) -> Ratchet:
    """Read the file.

    Raises:
        UsageError: it is no ratchet, or one of another format.
    """
    again = "write it anew with --update-ratchet"
    try:
        found = msgspec.json.decode(text, type=Ratchet)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: not a ratchet file: {error}; {again}") from None
    if found.format != FORMAT:
        raise UsageError(
            f"{path}: ratchet format {found.format}, this gatecert reads {FORMAT}; {again}"
        )
    return found


def render_ratchet(ratchet: Ratchet) -> str:
    """The file's text: keys and ids sorted, one id a line."""
    body = msgspec.json.encode(ratchet, order="sorted")
    return msgspec.json.format(body, indent=1).decode() + "\n"


def hold(ratchet: Ratchet, certificate: Certificate, *, whole: bool) -> Held:
    """Hold the chosen gate's results against what is known of it.

    A survivor that somebody accepts is no new one; a kill that is lost stays lost. Only mutants
    that the run has a result for are held, and of a run of a part (`whole` is False) nothing is
    said to be gone.
    """
    known = ratchet.gates.get(certificate.gate, Known())
    survived, killed = set(known.survived), set(known.killed)
    now = _statuses(certificate)
    alive = {name for name, status in now.items() if status is Status.SURVIVED}
    dead = {name for name, status in now.items() if status is Status.KILLED}
    # A duplicate of a survivor is no further survivor.
    reported = {name for name in alive if _own(certificate, name).status is Status.SURVIVED}
    accepted = {one.id for one in certificate.survivors if one.accepted and not one.reopened}
    no_verdict = {name for name, status in now.items() if status in _NO_VERDICT}
    return Held(
        new_survivors=_sorted(reported - survived - killed - accepted),
        lost_kills=_sorted(reported & killed),
        now_killed=_sorted(dead & survived),
        new_kills=_sorted(dead - survived - killed),
        unanswered=_sorted(no_verdict & killed),
        gone=_sorted((survived | killed) - certificate.results.keys()) if whole else (),
    )


def updated(ratchet: Ratchet, certificate: Certificate, *, whole: bool) -> Ratchet:
    """The ratchet with the chosen gate's results in it. What a run of a part did not run stays,
    and so does what has no verdict that counts this time."""
    before = ratchet.gates.get(certificate.gate, Known())
    now = _statuses(certificate)

    def names(wanted: Status) -> tuple[str, ...]:
        old = before.survived if wanted is Status.SURVIVED else before.killed
        kept = {n for n in old if (now[n] in _NO_VERDICT if n in now else not whole)}
        return _sorted(kept | {name for name, status in now.items() if status is wanted})

    known = Known(survived=names(Status.SURVIVED), killed=names(Status.KILLED))
    return Ratchet(gates={**ratchet.gates, certificate.gate: known})


def _statuses(certificate: Certificate) -> dict[str, Status]:
    """What became of every mutant that was run and counts, duplicates as the one they are."""
    found: dict[str, Status] = {}
    for name, by_gate in certificate.results.items():
        result = by_gate[certificate.gate]
        if result.ladder:
            continue
        status = _resolved(result, certificate.results, certificate.gate)
        if status is not Status.NOT_RUN:
            found[name] = status
    return found


def _resolved(result: Result, results: Mapping[str, Mapping[str, Result]], gate: str) -> Status:
    seen: set[str] = set()
    while result.status is Status.DUPLICATE and result.same_as in results:
        if result.same_as in seen:
            break
        seen.add(result.same_as)
        result = results[result.same_as][gate]
    return result.status


def _own(certificate: Certificate, name: str) -> Result:
    return certificate.results[name][certificate.gate]


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
