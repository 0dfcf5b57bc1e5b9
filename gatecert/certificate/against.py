"""A run held against an earlier one: which control is no longer seen as it was?"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gatecert.certificate.records import Against, Certificate, ControlChange, ControlResult
from gatecert.certificate.seal import sealed
from gatecert.certificate.verify import changed_sources


def held_against(certificate: Certificate, earlier: Certificate | None) -> Certificate:
    """The certificate with what has changed since the earlier one, gate by gate.

    Bits are compared where both runs looked at as many cases and neither verdict changed.
    """
    if earlier is None:
        return certificate
    before, after = earlier.environment, certificate.environment
    versions = {
        name: (getattr(before, name), getattr(after, name))
        for name in before.__struct_fields__
        if name != "labels_sha256" and getattr(before, name) != getattr(after, name)
    }
    gates = {gate for said in earlier.control_results.values() for gate in said}
    subjects = {subject.name for subject in certificate.subjects}
    pairs = [
        (control, gate)
        for control in dict.fromkeys((*earlier.control_results, *certificate.control_results))
        if control.partition("/")[0] in subjects
        for gate in dict.fromkeys((certificate.gate, *(score.gate for score in certificate.beside)))
        if gate in gates
    ]
    both = [pair for pair in pairs if _get(earlier, *pair) and _get(certificate, *pair)]
    against = Against(
        certificate_sha256=earlier.sha256,
        compared=len(both),
        environment=versions,
        changed_sources=_sources(earlier, certificate),
        changes=tuple(
            change
            for control, gate in pairs
            for change in _changes(
                control, gate, _get(earlier, control, gate), _get(certificate, control, gate)
            )
        ),
    )
    return sealed(msgspec.structs.replace(certificate, against=against))


def _get(certificate: Certificate, control: str, gate: str) -> ControlResult | None:
    return certificate.control_results.get(control, {}).get(gate)


def _changes(
    control: str, gate: str, before: ControlResult | None, after: ControlResult | None
) -> Iterator[ControlChange]:
    if before is None or after is None:
        if before is not after:
            said = ("no", "yes") if before is None else ("yes", "no")
            yield ControlChange(control, gate, "present", *said)
    elif before.outcome is not after.outcome:
        yield ControlChange(control, gate, "verdict", before.outcome.value, after.outcome.value)
    elif before.cases != after.cases:
        yield ControlChange(control, gate, "cases", str(before.cases), str(after.cases))
    elif before.bits and after.bits and before.bits != after.bits:
        yield ControlChange(control, gate, "bits", before.bits[:12], after.bits[:12])


def _sources(earlier: Certificate, certificate: Certificate) -> tuple[str, ...]:
    if earlier.provenance is None or certificate.provenance is None:
        return ()
    return changed_sources(earlier.provenance, certificate.provenance)
