"""The certificate as JUnit XML: a suite per subject, a case per mutant.

Passed means killed, and nothing else does: a survivor is a failure, a mutant without a verdict
that counts an error, and one that nobody ran, or could, is skipped, as is one that touched memory
out of bounds while the gate passed. A rejected control and an accepted adversary are failures too.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable

from gatecert.campaign.records import Status
from gatecert.certificate.records import Certificate, Result, Survivor
from gatecert.reports import cards

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ERRORS = frozenset({Status.CRASHED, Status.TIMEOUT, Status.INCONCLUSIVE})
_KINDS = ("failure", "error", "skipped")


def render_junit(certificate: Certificate) -> str:
    """The chosen gate's results as one XML document."""
    survivors = {survivor.id: survivor for survivor in certificate.survivors}
    unseen = {u.id: u.why for u in (*certificate.not_observable, *certificate.inconclusive)}
    suites = ET.Element("testsuites", name=_text(f"gatecert {certificate.gate}"))
    for subject in certificate.subjects:
        cases = [
            _mutant(name, by_gate[certificate.gate], survivors.get(name), unseen.get(name, ""))
            for name, by_gate in certificate.results.items()
            if name.partition("/")[0] == subject.name
        ]
        cases += _others(certificate, subject.name)
        if subject.failed:
            cases.append(_case(f"{subject.name}/original", "error", "failed", subject.failed))
        suite = ET.SubElement(suites, "testsuite", name=_text(subject.name))
        suite.extend(cases)
    for element in (suites, *suites.findall("testsuite")):
        for name, count in _counts(element.iter("testcase")).items():
            element.set(name, count)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _mutant(name: str, result: Result, survivor: Survivor | None, unseen: str) -> ET.Element:
    said = unseen or " ".join(part for part in (result.detail, result.case) if part)
    status = result.status
    if result.ladder and status is not Status.KILLED:
        return _case(name, "skipped", status.value, f"detection ladder, in no rate: {status.value}")
    if status is Status.SURVIVED:
        why = "" if survivor is None else f"{survivor.detail} ({survivor.reason.value})"
        return _case(name, "failure", status.value, f"survived: {why}", _card(survivor))
    if status in _ERRORS:
        return _case(name, "error", status.value, f"{status.value}: {said}")
    if status is not Status.KILLED:
        twin = f"same code as {result.same_as}" if result.same_as else ""
        because = said or twin
        return _case(name, "skipped", status.value, f"{status.value}: {because}".rstrip(": "))
    return _case(name)


def _others(certificate: Certificate, subject: str) -> Iterable[ET.Element]:
    """Controls without an acceptance, and adversaries with one."""
    for rejection in certificate.controls.rejections:
        if rejection.id.partition("/")[0] == subject:
            kind = "failure" if rejection.outcome == "rejected" else "error"
            said = f"{rejection.reason.value} {rejection.detail} {rejection.case}"
            what = f"correct code: {rejection.outcome}: {' '.join(said.split())}"
            yield _case(rejection.id, kind, rejection.outcome, what)
    for name in certificate.adversaries.accepted_ids:
        if name.partition("/")[0] == subject:
            yield _case(name, "failure", "accepted", "accepted, and no gate may accept it")


def _case(
    name: str, kind: str = "", what: str = "", message: str = "", text: str = ""
) -> ET.Element:
    """A test case: of `subject/function/operator/ordinal` the first two parts are its class."""
    parts = name.split("/")
    home = parts[:2] if len(parts) > 2 else parts[:1]
    case = ET.Element("testcase", name=_text("/".join(parts[len(home) :])))
    case.set("classname", _text(".".join(home)))
    if kind:
        said = ET.SubElement(case, kind, message=_text(message))
        if kind != "skipped":
            said.set("type", what)
        said.text = _text(text) or None
    return case


def _card(survivor: Survivor | None) -> str:
    if survivor is None:
        return ""
    return "\n".join([*cards.survivor_lines(survivor), "", survivor.diff])


def _counts(cases: Iterable[ET.Element]) -> dict[str, str]:
    cases = list(cases)
    found = {
        f"{kind}s" if kind != "skipped" else kind: sum(c.find(kind) is not None for c in cases)
        for kind in _KINDS
    }
    return {"tests": str(len(cases)), **{name: str(count) for name, count in found.items()}}


def _text(text: str) -> str:
    """Without the characters that no XML document may hold."""
    return _NOT_XML.sub("\ufffd", text)
