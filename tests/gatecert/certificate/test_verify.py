"""A certificate holds for a tree in which nothing it rests on changed; else it says what did."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatecert.certificate import Certificate, certify
from gatecert.certificate.against import held_against
from gatecert.certificate.exits import exit_code, unmet
from gatecert.certificate.records import ControlResult
from gatecert.certificate.seal import hash_of, sealed
from gatecert.certificate.verify import ChangeKind, changes
from gatecert.config import Require
from gatecert.errors import ExitCode
from gatecert.gates.records import GateOutcome
from gatecert.profiles import get_profile
from gatecert.provenance import FunctionHash, GateHashes, Provenance, SubjectHashes
from gatecert.reports.json import parse_json, render_json
from gatecert.subjects import Subject
from tests.runs import ENVIRONMENT, run, subject_run, typical_run, verdict

KERNEL = FunctionHash("acme.k:softmax_kernel", "acme/k.py", "a" * 64)
LAUNCHER = FunctionHash("acme.k:softmax", "acme/k.py", "b" * 64)
THEN = Provenance(
    config="gatecert.toml",
    settings={"subject.softmax.dtypes": '["float32"]'},
    subjects={
        "softmax": SubjectHashes((KERNEL,), (LAUNCHER,), {"acme/k.py": "1", "acme/u.py": "2"})
    },
    gates={"tests": GateHashes({"tests/test_x.py": "3"}, "4")},
    operators={"drop-load-mask": 1},
    operators_sha256="5",
    gatecert_sha256="6",
    libraries={"torch": "2.13.0", "pytest": "8.3"},
)


def said(now: Provenance, **environment: str) -> list[str]:
    """What is said of a tree, the certificate itself being intact."""
    certificate = certify(run(subject_run(), provenance=THEN))
    here = msgspec.structs.replace(ENVIRONMENT, **environment)
    return [str(change) for change in changes(certificate, now, here, certificate.sha256)]


def changed(**fields: Any) -> Provenance:
    return msgspec.structs.replace(THEN, **fields)


def of_subject(**fields: Any) -> Provenance:
    hashes = msgspec.structs.replace(THEN.subjects["softmax"], **fields)
    return changed(subjects={"softmax": hashes})


def test_an_unchanged_tree_holds() -> None:
    assert said(THEN) == []


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (
            of_subject(
                kernels=(msgspec.structs.replace(KERNEL, sha256="c"),),
                files={"acme/k.py": "x", "acme/u.py": "2"},
            ),
            "kernel softmax_kernel in acme/k.py changed",
        ),
        (
            of_subject(
                launchers=(msgspec.structs.replace(LAUNCHER, sha256="c"),),
                files={"acme/k.py": "x", "acme/u.py": "2"},
            ),
            "launcher softmax in acme/k.py changed",
        ),
        (
            of_subject(files={"acme/k.py": "x", "acme/u.py": "2"}),
            "acme/k.py changed outside its kernels and launchers",
        ),
        (of_subject(files={"acme/k.py": "1", "acme/u.py": "x"}), "acme/u.py changed"),
        (of_subject(files={"acme/k.py": "1"}), "acme/u.py is gone"),
        (
            of_subject(
                kernels=(msgspec.structs.replace(KERNEL, sha256=""),),
                launchers=(LAUNCHER,),
                files={"acme/u.py": "2"},
            ),
            "kernel softmax_kernel in acme/k.py is gone with its file",
        ),
        (
            changed(gates={"tests": GateHashes({"tests/test_x.py": "x"}, "4")}),
            "gate tests: tests/test_x.py changed",
        ),
        (
            changed(gates={"tests": GateHashes({"tests/test_x.py": "3", "tests/n.py": "n"}, "4")}),
            "gate tests: tests/n.py is new",
        ),
        (changed(gates={"tests": GateHashes({}, "4")}), "gate tests: tests/test_x.py is gone"),
        (
            changed(gates={"tests": GateHashes({"tests/test_x.py": "3"}, "x")}),
            "gate tests: another file of the project, which it may read, changed, came or went",
        ),
        (changed(gates={}), "gate tests: the configuration has it no more"),
        (
            changed(settings={"subject.softmax.dtypes": '["float16"]'}),
            'configuration: subject.softmax.dtypes: ["float32"] -> ["float16"]',
        ),
        (
            changed(settings={}),
            'configuration: subject.softmax.dtypes: ["float32"] -> absent',
        ),
        (
            changed(operators={"drop-load-mask": 2}, operators_sha256="x", gatecert_sha256="x"),
            "operators: drop-load-mask: version 1 -> version 2",
        ),
        (
            changed(operators_sha256="x", gatecert_sha256="x"),
            "operators: their sources changed, and none of their versions",
        ),
        (changed(gatecert_sha256="x"), "gatecert 0.1.0: its code"),
        (changed(libraries={"torch": "2.13.0", "pytest": "9"}), "pytest: 8.3 -> 9"),
        (changed(libraries={"torch": "2.13.0", "pytest": ""}), "pytest: 8.3 -> absent"),
    ],
)
def test_a_change_is_said_once_and_by_name(now: Provenance, line: str) -> None:
    assert said(now) == [line]


def test_a_version_of_the_environment_is_said_once() -> None:
    now = changed(libraries={"torch": "2.14.0", "pytest": "8.3"})
    assert said(now, torch="2.14.0") == ["torch: 2.13.0 -> 2.14.0"]


@pytest.fixture
def certificate() -> Certificate:
    return certify(msgspec.structs.replace(typical_run(), provenance=THEN))


def test_an_edited_figure_no_longer_fits_the_certificates_own_hash(
    certificate: Certificate,
) -> None:
    document = json.loads(render_json(certificate))
    assert hash_of(document) == certificate.sha256 == document["sha256"]
    document["mutants"]["killed"] += 1
    found = changes(certificate, THEN, ENVIRONMENT, hash_of(document))
    assert [change.kind for change in found] == [ChangeKind.CERTIFICATE]


def test_layout_order_and_timings_are_not_part_of_the_hash(certificate: Certificate) -> None:
    document = json.loads(render_json(certificate))
    document["timings_s"] = {"judge": 1e6}
    shuffled = dict(reversed(document.items()))
    assert hash_of(json.loads(json.dumps(shuffled, indent=7))) == certificate.sha256
    assert sealed(parse_json(json.dumps(shuffled))).sha256 == certificate.sha256


def with_control(certificate: Certificate, **fields: Any) -> Certificate:
    """The certificate with another answer of the oracle on the original of softmax."""
    results = {control: dict(by_gate) for control, by_gate in certificate.control_results.items()}
    result = results["softmax/original"]["oracle"]
    results["softmax/original"]["oracle"] = msgspec.structs.replace(result, **fields)
    return sealed(msgspec.structs.replace(certificate, control_results=results))


def test_every_gates_answer_on_every_control_is_recorded(certificate: Certificate) -> None:
    assert certificate.control_results["softmax/original"]["oracle"] == ControlResult(
        GateOutcome.ACCEPTED, 5, 0.0, "softmax/original"
    )
    weak = certificate.control_results["softmax/benign/blocks"]["weak"]
    assert weak.outcome is GateOutcome.REJECTED


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"outcome": GateOutcome.REJECTED}, "verdict"),
        ({"cases": 9, "bits": "x"}, "cases"),
        ({"bits": "x"}, "bits"),
        ({"margin": 0.5}, None),
        ({"bits": ""}, None),
    ],
)
def test_what_changed_on_a_control_since_an_earlier_run_is_named(
    certificate: Certificate, fields: dict[str, Any], what: str | None
) -> None:
    against = held_against(certificate, with_control(certificate, **fields)).against
    assert against is not None
    assert [(c.id, c.gate, c.what) for c in against.changes] == (
        [("softmax/original", "oracle", what)] if what else []
    )
    assert against.compared == 4


def test_a_control_that_only_one_run_has_is_named(certificate: Certificate) -> None:
    fewer = {k: v for k, v in certificate.control_results.items() if "benign" not in k}
    earlier = msgspec.structs.replace(certificate, control_results=fewer)
    against = held_against(certificate, earlier).against
    assert against is not None
    assert {(c.id, c.what, c.before) for c in against.changes} == {
        ("softmax/benign/blocks", "present", "no")
    }


def test_versions_and_sources_that_differ_are_named_apart(certificate: Certificate) -> None:
    older = msgspec.structs.replace(certificate.environment, triton="3.8.0")
    sources = changed(settings={"subject.softmax.dtypes": '["float16"]'})
    earlier = msgspec.structs.replace(certificate, environment=older, provenance=sources)
    against = held_against(certificate, earlier).against
    assert against is not None
    assert against.environment == {"triton": ("3.8.0", "3.9.0")}
    (line,) = against.changed_sources
    assert line.startswith("configuration: subject.softmax.dtypes")


def test_another_verdict_than_before_is_a_requirement_missed_and_other_bits_are_not() -> None:
    subject = Subject("softmax", "acme:softmax", "softmax", profile=get_profile("toolkit-upgrade"))
    plain = certify(run(subject_run(subject=subject, verdicts=(verdict("softmax/original"),))))
    bits = held_against(plain, with_control(plain, bits="x"))
    assert exit_code(bits, Require()) is ExitCode.MET
    rejected = held_against(plain, with_control(plain, outcome=GateOutcome.REJECTED))
    assert exit_code(rejected, Require()) is ExitCode.REQUIREMENT_NOT_MET
    assert unmet(rejected, Require()) == [
        "oracle: softmax/original is accepted, and was rejected before"
    ]


def test_a_profile_that_plants_nothing_is_judged_by_controls_and_adversaries() -> None:
    subject = Subject("softmax", "acme:softmax", "softmax", profile=get_profile("vendor-call"))
    bound = Require(kill_rate=0.9)
    none = certify(run(subject_run(subject=subject)))
    assert exit_code(none, bound) is ExitCode.NOTHING_SCORED
    good = certify(run(subject_run(subject=subject, verdicts=(verdict("softmax/original"),))))
    assert exit_code(good, bound) is ExitCode.MET
    usual = certify(run(subject_run(verdicts=(verdict("softmax/original"),))))
    assert exit_code(usual, bound) is ExitCode.NOTHING_SCORED


def test_another_gpu_is_a_change_and_no_gpu_is_none() -> None:
    then = msgspec.structs.replace(ENVIRONMENT, gpu="NVIDIA H200, sm_90, driver CUDA 12.8")
    certificate = certify(run(subject_run(), provenance=THEN, environment=then))

    def said_on(gpu: str) -> list[str]:
        here = msgspec.structs.replace(ENVIRONMENT, gpu=gpu)
        return [str(change) for change in changes(certificate, THEN, here, certificate.sha256)]

    assert said_on(then.gpu) == said_on("") == []
    (line,) = said_on("NVIDIA L4, sm_89, driver CUDA 12.8")
    assert line.startswith("gpu: NVIDIA H200, sm_90")
