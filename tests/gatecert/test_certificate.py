"""Statuses, figures and exit codes follow from a run's records, and from nothing else."""

from __future__ import annotations

import msgspec
import pytest

from gatecert.campaign.records import LANE_SHOWS, Run, Status
from gatecert.certificate import Certificate, certify, exit_code, status_of, unmet
from gatecert.certificate.records import Result
from gatecert.certificate.status import is_oracle
from gatecert.config import Require
from gatecert.diagnosis.records import Cause
from gatecert.errors import ExitCode
from gatecert.gates.evidence import Evidence
from gatecert.gates.records import Reason, Verdict
from gatecert.gates.wiring.weaknesses import Weakness
from gatecert.lanes.records import Finding, FindingKind
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.operators.records import ObservableBy
from gatecert.reports.tables import class_table, gate_table
from tests.runs import comparison, mutant, run, subject_run, typical_run, verdict

SHOWS = LANE_SHOWS["interpreter"]
ID = "softmax/k/drop-load-mask/1-aaaaaa"
OUT_OF_BOUNDS = Finding(FindingKind.LOAD_OUT_OF_BOUNDS, "acme.kernels:k", "p", 3, 64)


def status(said: Verdict | None, code: str = "viable", *labels: ObservableBy) -> Status:
    planted = mutant(ID, observable_by=labels or (ObservableBy.VALUES,))
    return status_of(planted, comparison(ID, code), said, SHOWS)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("rejected", Status.KILLED),
        ("accepted", Status.SURVIVED),
        ("crashed", Status.CRASHED),
        ("timeout", Status.TIMEOUT),
        ("error", Status.INCONCLUSIVE),
    ],
)
def test_a_verdict_decides_the_status(outcome: str, expected: Status) -> None:
    assert status(verdict(ID, outcome)) is expected


@pytest.mark.parametrize("outcome", ["rejected", "accepted", "crashed", "timeout", "error"])
def test_no_verdict_counts_without_proof_that_the_mutant_was_loaded(outcome: str) -> None:
    assert status(verdict(ID, outcome, loaded=False)) is Status.INCONCLUSIVE


def test_a_missing_verdict_is_never_a_kill() -> None:
    assert status(None) is Status.INCONCLUSIVE


@pytest.mark.parametrize("code", ["unviable", "equivalent", "duplicate"])
@pytest.mark.parametrize("outcome", ["rejected", "accepted"])
def test_compiled_code_outweighs_every_verdict(code: str, outcome: str) -> None:
    assert status(verdict(ID, outcome), code) is Status(code)


def test_an_unknown_comparison_claims_nothing() -> None:
    assert status(verdict(ID), "unknown") is Status.SURVIVED
    assert status_of(mutant(ID), None, verdict(ID), SHOWS) is Status.SURVIVED


@pytest.mark.parametrize("outcome", ["rejected", "accepted", "error"])
def test_a_label_that_the_lane_cannot_show_is_not_observable_whatever_happened(
    outcome: str,
) -> None:
    said = verdict(ID, outcome)
    assert (
        status(said, "viable", ObservableBy.FAR_SPAN, ObservableBy.DEVICE) is Status.NOT_OBSERVABLE
    )
    nothing = mutant(ID, observable_by=())
    assert status_of(nothing, None, said, SHOWS) is Status.NOT_OBSERVABLE


def test_one_observable_label_is_enough() -> None:
    said = verdict(ID, "rejected")
    assert status(said, "viable", ObservableBy.RACE, ObservableBy.BOUNDS) is Status.KILLED


def test_guard_findings_under_an_external_gate_are_unreported_and_not_a_kill() -> None:
    assert status(verdict(ID, gate="tests", findings=(OUT_OF_BOUNDS,))) is Status.UNREPORTED
    rejected = verdict(ID, "rejected", gate="tests", findings=(OUT_OF_BOUNDS,))
    assert status(rejected) is Status.KILLED


def test_the_oracle_decides_about_its_own_findings() -> None:
    assert status(verdict(ID, findings=(OUT_OF_BOUNDS,))) is Status.SURVIVED
    assert [is_oracle(name) for name in ("oracle", "oracle-exact", "oracles", "tests")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_kill_rate_is_killed_of_killed_and_survived() -> None:
    names = [f"softmax/k{i % 2}/drop-load-mask/{i}-aaaaaa" for i in range(6)]
    outcomes = ["rejected", "rejected", "rejected", "accepted", "timeout", "crashed"]
    part = subject_run(
        mutants=tuple(mutant(name) for name in names),
        verdicts=tuple(verdict(n, o) for n, o in zip(names, outcomes, strict=True)),
    )
    certificate = certify(run(part))
    assert (certificate.kill_rate.value, certificate.kill_rate.n) == (0.75, 4)
    assert (certificate.detection_rate.value, certificate.detection_rate.n) == (5 / 6, 6)
    counts = certificate.mutants
    assert (counts.killed, counts.survived, counts.crashed, counts.timeout) == (3, 1, 1, 1)


def test_what_a_guard_alone_saw_credits_no_gate() -> None:
    names = [f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(5)]
    passed = [verdict(name, gate="tests", findings=(OUT_OF_BOUNDS,)) for name in names[:3]]
    part = subject_run(
        mutants=tuple(map(mutant, names)),
        verdicts=(
            *passed,
            verdict(names[3], gate="tests"),
            verdict(names[4], "crashed", gate="tests"),
        ),
    )
    found = certify(run(part, gate="tests", gates=("tests",)))
    assert (found.mutants.unreported, found.mutants.crashed) == (3, 1)
    assert (found.kill_rate.value, found.kill_rate.n) == (0.0, 1)
    assert (found.detection_rate.value, found.detection_rate.n) == (0.5, 2)
    assert class_table(found).rows[0][-1] == "0/1 (0.0%), 1 crashed, 3 unreported"
    alone = msgspec.structs.replace(part, verdicts=tuple(passed))
    assert certify(run(alone, gate="tests", gates=("tests",))).detection_rate.value is None


def test_the_macro_average_weighs_bug_classes_alike() -> None:
    names = [f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(4)]
    planted = [mutant(name) for name in names[:3]]
    planted.append(mutant(names[3], bug_class="race"))
    said = [verdict(name, "rejected") for name in names[:3]]
    said.append(verdict(names[3]))
    part = subject_run(mutants=tuple(planted), verdicts=tuple(said))
    certificate = certify(run(part))
    assert certificate.kill_rate.value == 0.75
    assert certificate.macro_kill_rate == 0.5


def test_the_detection_ladder_stays_out_of_every_other_figure() -> None:
    certificate = certify(typical_run())
    assert certificate.mutants.total == 4
    assert certificate.kill_rate.n == 2
    assert [s.id for s in certificate.survivors] == ["softmax/k/wrong-constant.swap/1-bbbbbb"]
    assert {rung: g.mutants.survived for rung, g in certificate.ladder.items()} == {"1e-4": 1}


def test_other_gates_stand_beside_with_the_same_figures() -> None:
    certificate = certify(typical_run())
    (weak,) = certificate.beside
    assert weak.gate == "weak"
    assert (weak.kill_rate.value, weak.kill_rate.n) == (0.0, 2)
    assert (weak.adversaries.total, weak.adversaries.accepted) == (2, 1)
    assert weak.adversaries.accepted_ids == ("softmax/adversary/zeros",)
    assert (weak.controls.runs, weak.controls.rejected) == (2, 1)
    assert weak.by_class.keys() == certificate.by_class.keys()
    assert certificate.results["softmax/k/drop-load-mask/1-aaaaaa"] == {
        "oracle": Result(Status.KILLED, Reason.VALUES, case="softmax/float32/N=5"),
        "weak": Result(Status.SURVIVED),
    }


def test_controls_are_counted_as_runs_distinct_and_rejected() -> None:
    names = [f"softmax/benign/{i}" for i in range(3)]
    part = subject_run(
        controls=tuple(Candidate(name, CandidateKind.BENIGN, "softmax") for name in names),
        verdicts=(
            verdict("softmax/original", bits="a"),
            verdict(names[0], bits="a"),
            verdict(names[1], bits="b"),
            verdict(names[2], "rejected", bits="c", detail="off by 3"),
        ),
    )
    controls = certify(run(part)).controls
    assert (controls.runs, controls.distinct, controls.rejected, controls.failed) == (4, 2, 1, 0)
    assert controls.cases == 20
    assert [(r.id, r.detail) for r in controls.rejections] == [(names[2], "off by 3")]
    # The unit is the kernel: one of one, whatever the number of rewrites.
    assert (controls.rejected_kernels.value, controls.rejected_kernels.n) == (1.0, 1)


@pytest.mark.parametrize("outcome", ["accepted", "rejected"])
def test_weaknesses_are_named_of_a_gate_that_accepts_the_original_and_was_watched(
    outcome: str,
) -> None:
    name = "softmax/adversary/raises"
    part = subject_run(
        adversaries=(Candidate(name, CandidateKind.ADVERSARY, "softmax"),),
        verdicts=(
            verdict("softmax/original", outcome, evidence=Evidence(entry_calls=1)),
            verdict(name, evidence=Evidence(entry_calls=1, entry_raised=1)),
        ),
    )
    certificate = certify(run(part))
    accepted = outcome == "accepted"
    assert [one.weakness for one in certificate.weaknesses] == (
        [Weakness.SWALLOWED_EXCEPTION] if accepted else []
    )
    assert certificate.adversaries.because == (
        {name: (Weakness.SWALLOWED_EXCEPTION,)} if accepted else {}
    )


def test_an_adversary_without_a_verdict_is_not_called_caught() -> None:
    name = "softmax/adversary/raises"
    part = subject_run(
        adversaries=(Candidate(name, CandidateKind.ADVERSARY, "softmax"),),
        verdicts=(verdict(name, "error"),),
    )
    adversaries = certify(run(part)).adversaries
    assert (adversaries.total, adversaries.accepted, adversaries.inconclusive) == (0, 0, 1)


def test_the_observable_share_counts_viable_mutants_only() -> None:
    observable = certify(typical_run()).observable
    assert (observable.viable, observable.observable, observable.share) == (3, 2, 2 / 3)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (verdict(ID, launches=0, bits="new"), Cause.UNREACHED),
        (verdict(ID, bits="original"), Cause.UNINFECTED),
        (verdict(ID, bits="new", margin=0.4), Cause.TOLERATED),
        (verdict(ID, bits=""), Cause.UNEXPLAINED),
    ],
)
def test_a_survivor_gets_the_first_reason_that_evidence_supports(
    said: Verdict, reason: Cause
) -> None:
    part = subject_run(
        mutants=(mutant(ID),), verdicts=(verdict("softmax/original", bits="original"), said)
    )
    (survivor,) = certify(run(part)).survivors
    assert (survivor.reason, survivor.margin) == (reason, said.margin)


@pytest.mark.parametrize("uncompared", [False, True])
def test_one_code_on_a_gates_own_launches_is_a_survivor_and_no_equivalent(uncompared: bool) -> None:
    """Else a narrow gate would shrink what it is measured by."""
    part = subject_run(
        mutants=(mutant(ID),),
        comparisons=(comparison(ID, "same_on_launches"),),
        verdicts=(verdict("softmax/original"), verdict(ID, uncompared=uncompared)),
    )
    found = certify(run(part))
    (survivor,) = found.survivors
    assert (found.mutants.equivalent, found.kill_rate.n) == (0, 1)
    assert (survivor.reason is Cause.UNINFECTED) is not uncompared
    assert any("declares no operation" in fact for fact in survivor.known) is not uncompared


def test_a_gate_that_counts_no_launches_is_not_said_to_reach_nothing() -> None:
    part = subject_run(
        mutants=(mutant(ID),),
        verdicts=(verdict("softmax/original", launches=0, bits="a"), verdict(ID, launches=0)),
    )
    assert certify(run(part)).survivors[0].reason is Cause.TOLERATED


def test_what_was_not_tested_is_named_with_its_subject() -> None:
    certificate = certify(typical_run())
    assert certificate.not_tested == (
        "softmax: gradients",
        "gelu: all of it: importing acme.gelu raised ImportError",
    )
    assert [(u.id, u.why) for u in certificate.not_observable] == [
        ("softmax/k/drop-store-mask/1-cccccc", "only device would show it")
    ]


def test_the_certificate_survives_its_own_json() -> None:
    certificate = certify(typical_run())
    text = msgspec.json.encode(certificate)
    assert msgspec.json.decode(text, type=Certificate) == certificate


def test_the_documented_keys_are_there() -> None:
    holds = msgspec.to_builtins(certify(typical_run()))
    assert {
        "gate", "environment", "seed", "subjects", "controls", "adversaries", "mutants",
        "kill_rate", "by_class", "by_operator", "survivors", "skipped", "not_tested", "beside",
    } <= holds.keys()  # fmt: skip
    assert set(holds["mutants"]) == {status.value for status in Status}
    assert {"runs", "distinct", "rejected"} <= holds["controls"].keys()
    assert {"total", "accepted"} <= holds["adversaries"].keys()
    assert set(holds["kill_rate"]) == {"value", "low", "high", "n"}
    assert {"gate", "kill_rate", "by_class", "controls", "adversaries"} <= holds["beside"][0].keys()
    assert {"id", "diff", "case", "worst", "margin", "detail", "reason"} <= holds["survivors"][
        0
    ].keys()


def scored(outcome: str = "accepted") -> tuple[Verdict, Verdict]:
    return verdict("softmax/original"), verdict(ID, outcome)


def code_of(part_run: Run, require: Require | None = None) -> ExitCode:
    return exit_code(certify(part_run), require or Require())


def test_survivors_alone_exit_with_zero() -> None:
    assert code_of(run(subject_run(mutants=(mutant(ID),), verdicts=scored()))) is ExitCode.MET


def test_a_missed_requirement_exits_with_two_and_says_which() -> None:
    part_run = run(subject_run(mutants=(mutant(ID),), verdicts=scored()))
    require = Require(kill_rate=0.9, classes={"mask-missing": 0.5, "race": 0.5})
    assert code_of(part_run, require) is ExitCode.REQUIREMENT_NOT_MET
    assert unmet(certify(part_run), require) == [
        "oracle: kill_rate is 0.0%, required 90.0%",
        "oracle: class mask-missing is 0.0%, required 50.0%",
        "oracle: class race is unknown (nothing scored), required 50.0%",
    ]
    met = run(subject_run(mutants=(mutant(ID),), verdicts=scored("rejected")))
    assert code_of(met, Require(kill_rate=1.0, classes={"mask-missing": 1.0})) is ExitCode.MET


def test_an_accepted_adversary_misses_its_requirement_only_where_asked() -> None:
    certificate = certify(typical_run())
    weak = msgspec.structs.replace(certificate, adversaries=certificate.beside[0].adversaries)
    assert unmet(weak, Require()) == []
    assert unmet(weak, Require(adversaries=True)) == [
        "oracle: 1 adversaries accepted (softmax/adversary/zeros), required 0"
    ]


def test_nothing_scored_exits_with_five() -> None:
    part = subject_run(mutants=(mutant(ID),), verdicts=scored("error"))
    assert code_of(run(part)) is ExitCode.NOTHING_SCORED
    assert code_of(run(part), Require(kill_rate=0.5)) is ExitCode.NOTHING_SCORED


def test_a_rejected_control_outranks_nothing_scored() -> None:
    part = subject_run(verdicts=(verdict("softmax/original", "rejected"),))
    assert code_of(run(part)) is ExitCode.CONTROL_REJECTED


@pytest.mark.parametrize("outcome", ["error", "crashed", "timeout"])
def test_a_control_without_a_verdict_outranks_a_rejected_one(outcome: str) -> None:
    benign = Candidate("softmax/benign/1", CandidateKind.BENIGN, "softmax")
    part = subject_run(
        mutants=(mutant(ID),),
        controls=(benign,),
        verdicts=(
            verdict("softmax/original", outcome),
            verdict(benign.id, "rejected"),
            verdict(ID, "rejected"),
        ),
    )
    assert code_of(run(part)) is ExitCode.ENVIRONMENT_FAILED


def test_a_failed_subject_is_an_environment_failure() -> None:
    assert code_of(typical_run()) is ExitCode.ENVIRONMENT_FAILED


def test_a_rejected_equivalent_is_gatecerts_own_error_and_outranks_all() -> None:
    part = subject_run(
        mutants=(mutant(ID),),
        comparisons=(comparison(ID, "equivalent"),),
        verdicts=(
            verdict("softmax/original"),
            verdict("softmax/benign/blocks", "rejected"),
            verdict(ID, "rejected"),
        ),
        controls=(Candidate("softmax/benign/blocks", CandidateKind.BENIGN, "softmax"),),
    )
    certificate = certify(run(part))
    assert certificate.contradictions == (f"{ID}: proven equivalent, yet oracle rejected it",)
    assert exit_code(certificate, Require()) is ExitCode.INTERNAL


@pytest.mark.parametrize("bits", ["a", "b"])
def test_a_gate_that_rejects_the_original_may_reject_its_equivalents(bits: str) -> None:
    part = subject_run(
        mutants=(mutant(ID), mutant(f"{ID}x")),
        comparisons=(comparison(ID, "equivalent"),),
        verdicts=(
            verdict("softmax/original", "rejected", bits="a"),
            verdict(ID, "rejected", bits=bits),
            verdict(f"{ID}x", "rejected"),
            verdict("softmax/original", gate="tests", bits=""),
            verdict(ID, gate="tests", bits=""),
            verdict(f"{ID}x", "rejected", gate="tests"),
        ),
    )
    certified = run(part, gates=("oracle", "tests"))
    beside = run(part, gate="tests", gates=("tests", "oracle"))
    assert certify(certified).contradictions == certify(beside).contradictions == ()
    assert (code_of(certified), code_of(beside)) == (ExitCode.CONTROL_REJECTED, ExitCode.MET)


@pytest.mark.parametrize(("bits", "uncompared"), [("b", False), ("a", False), ("b", True)])
def test_an_equivalent_of_other_bits_is_gatecerts_own_error_too(
    bits: str, uncompared: bool
) -> None:
    part = subject_run(
        mutants=(mutant(ID),),
        comparisons=(comparison(ID, "equivalent"),),
        verdicts=(
            verdict("softmax/original", "accepted", bits="a"),
            verdict(ID, "accepted", bits=bits, uncompared=uncompared),
        ),
    )
    said = certify(run(part)).contradictions
    assert bool(said) == (bits == "b" and not uncompared)
    assert all("differ in bits" in one for one in said)


def test_where_no_gate_saw_bits_nobody_knows_which_controls_differ() -> None:
    part = subject_run(
        controls=(Candidate("softmax/benign/0", CandidateKind.BENIGN, "softmax"),),
        verdicts=(verdict("softmax/original", bits=""), verdict("softmax/benign/0", bits="")),
    )
    certificate = certify(run(part))
    assert (certificate.controls.runs, certificate.controls.distinct) == (2, None)
    assert gate_table(certificate).rows[0][1:3] == ("0 of 2", "-")


def test_the_other_gates_do_not_change_the_exit_code() -> None:
    part = subject_run(
        mutants=(mutant(ID),),
        verdicts=(*scored("rejected"), verdict("softmax/original", "rejected", gate="weak")),
    )
    assert code_of(run(part, gates=("oracle", "weak"))) is ExitCode.MET


def test_a_gate_that_launches_other_kernels_only_never_reached_the_mutant() -> None:
    planted = mutant("softmax/softmax_kernel/drop-load-mask/1-aaaaaa")
    elsewhere = verdict(planted.id, gate="tests", kernels=("acme.kernels:norm_kernel",))
    here = verdict(planted.id, gate="tests", kernels=("acme.kernels:softmax_kernel",))
    for said, reason in ((elsewhere, Cause.UNREACHED), (here, Cause.UNEXPLAINED)):
        part = subject_run(mutants=(planted,), verdicts=(said,))
        (survivor,) = certify(run(part, gate="tests", gates=("tests",))).survivors
        assert survivor.reason is reason


def test_a_survivor_names_the_case_on_which_the_oracle_kills_it() -> None:
    planted = mutant("softmax/softmax_kernel/drop-load-mask/1-aaaaaa")
    case = "softmax/float32/B=5,N=131/contiguous/normal/seed=0"
    part = subject_run(
        mutants=(planted,),
        verdicts=(
            verdict(planted.id, gate="tests"),
            verdict(planted.id, "rejected", reason=Reason.VALUES, case=case),
        ),
    )
    (survivor,) = certify(run(part, gate="tests", gates=("tests", "oracle"))).survivors
    assert survivor.oracle_case == case


def test_a_kill_by_an_oracle_that_rejects_the_original_names_no_case() -> None:
    planted = mutant("softmax/softmax_kernel/drop-load-mask/1-aaaaaa")
    part = subject_run(
        mutants=(planted,),
        verdicts=(
            verdict("softmax/original", "rejected"),
            verdict(planted.id, gate="tests"),
            verdict(planted.id, "rejected", reason=Reason.VALUES, case="some/case"),
        ),
    )
    (survivor,) = certify(run(part, gate="tests", gates=("tests", "oracle"))).survivors
    assert survivor.oracle_case == ""


def test_a_fault_that_only_a_guard_saw_says_that_the_gate_passed() -> None:
    planted = mutant("softmax/softmax_kernel/drop-load-mask/1-aaaaaa")
    found = Finding(FindingKind.LOAD_OUT_OF_BOUNDS, "acme.kernels:softmax_kernel", "x_ptr", 4, 9)
    part = subject_run(
        mutants=(planted,), verdicts=(verdict(planted.id, gate="tests", findings=(found,)),)
    )
    result = certify(run(part, gate="tests", gates=("tests",))).results[planted.id]["tests"]
    assert result.status is Status.UNREPORTED
    assert result.detail == (
        "touched memory out of bounds (load, 4 lanes on x_ptr), and the gate passed: a GPU may "
        "crash or not; see the sanitizer gate, docs/gates.md"
    )


def test_each_gate_is_counted_by_what_its_own_lane_can_show() -> None:
    far = mutant(ID, observable_by=(ObservableBy.FAR_SPAN,))
    said = (
        verdict("softmax/original", gate="gpu"),
        verdict("softmax/original", gate="tests"),
        verdict(far.id, "rejected", gate="gpu"),
    )
    part = subject_run(mutants=(far,), verdicts=said)
    certificate = certify(run(part, gate="gpu", gates=("gpu", "tests"), lanes={"gpu": "cuda"}))
    (beside,) = certificate.beside
    assert (certificate.lane, beside.lane) == ("cuda", "interpreter")
    assert (certificate.mutants.killed, certificate.mutants.not_observable) == (1, 0)
    assert (beside.mutants.killed, beside.mutants.not_observable) == (0, 1)
    assert certificate.observable.observable == 1
    assert [row[0] for row in gate_table(certificate).rows] == ["gpu (cuda)", "tests"]
