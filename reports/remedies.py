"""The smallest set of cases to add to a gate, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.remedies.records import Added, Form, HeldOut, Remedy, SmallestSet, Tolerance
from gatecert.wording import count

_MOST = 12
_WHERE = {
    Form.CONFIG: "gatecert.toml, as the gate oracle-added",
    Form.PYTEST: "a test module",
    Form.SNIPPET: "a script",
}


def remedy_lines(found: SmallestSet) -> list[str]:
    """The set, what it reaches, and what it leaves."""
    return list(_lines(found))


def _lines(found: SmallestSet) -> Iterator[str]:
    yield (
        f"{found.gate}: {found.killed} of {found.scored} killed; "
        f"{found.with_witness} of {count(found.survivors, 'survivor')} have a witness"
    )
    yield ""
    yield f"The smallest set that kills them ({count(len(found.cases), 'case')})"
    subject = ""
    for one in found.cases:
        if one.subject != subject:
            subject = one.subject
            yield f"  {subject}"
        yield _case_line(one)
    yield ""
    yield from _proof(found.held_out)
    yield f"kill rate with these cases: {found.kill_rate:.1%} of {found.scored}"
    if found.untreated:
        yield ""
        yield f"Without a witness ({len(found.untreated)})"
        yield from (f"  {one.mutant}: {one.why}" for one in found.untreated[:_MOST])
        if len(found.untreated) > _MOST:
            yield f"  ... and {len(found.untreated) - _MOST} more in remedies.json"


def _case_line(one: Added) -> str:
    killed = count(len(one.kills), "mutant")
    return f"    {one.case}  ({killed}, {1000 * one.seconds:.0f} ms)"


def _proof(held_out: HeldOut) -> Iterator[str]:
    share = held_out.killed / held_out.mutants if held_out.mutants else 0.0
    yield (
        f"with other values (seeds + {held_out.seed}) it kills {held_out.killed} of "
        f"{held_out.mutants} ({share:.1%}) and rejects {len(held_out.rejected)} of "
        f"{count(held_out.controls, 'control')}"
    )
    yield from (f"  rejected: {one}" for one in held_out.rejected)
    yield from (f"  survives: {one}" for one in held_out.survived[:_MOST])


def text_lines(remedy: Remedy) -> Iterator[str]:
    """What kills one mutant: its simplest case, and every form with its proof."""
    yield remedy.mutant
    yield f"  case: {remedy.case}"
    yield from (f"  {_tolerance_line(one)}" for one in remedy.tolerances)
    for text in remedy.texts:
        proof = "accepts the original and rejects the mutant" if text.kills else text.why
        yield ""
        yield f"  {_WHERE[text.form]}: {'' if text.kills else 'does not kill: '}{proof}"
        yield from (f"    {line}".rstrip() for line in text.text.splitlines())


def _tolerance_line(one: Tolerance) -> str:
    needs = (
        f"{count(one.controls, 'control')} need {one.controls_need:.2g}, "
        f"it needs {one.mutant_needs:.2g}"
    )
    if one.atol is None:
        return f"tolerance in {one.dtype}: none, it is within this operation's noise ({needs})"
    return (
        f"tolerance in {one.dtype}: any atol from {one.atol:.2g} to {one.mutant_needs:.2g}, with "
        f"an rtol of {one.rtol:.2g}, kills it ({needs})"
    )
