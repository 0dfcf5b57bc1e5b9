"""Claims about the frozen survivor situations: every label is true, as far as a machine can tell.

No classifier is asked. `tests.survivor_facts` measures, in a process of its own.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping

import msgspec
import pytest

from tests.e2e.commands import ROOT, environment
from tests.survivors import FOLDER, FROZEN, Facts, Situation, WhySurvived, mutant, situations

# Frozen before the classifier was written. Whoever changes a label, an edit, a kernel or a gate
# gives the reason in the changelog of the folder's README, and then this hash.
SITUATIONS_SHA256 = "63c4b8d1333a3219103f4a26cbc1a5a4a7fc30c9e2cb907ca0fd159ec530f82b"
CODE_SHA256 = "fcd6b5a43dbaf9168b84ad3b36d1972d6d3e0c694ae6a18f24895b40dd43b39d"

SAMPLE = 4
"""Random cases per claim about all inputs; `tests.survivor_facts --sample 200` asks more."""
AXES = {"dims", "values", "layout", "dtype", "scalar"}
UNREACHED, TOLERATED, UNINFECTED, UNOBSERVED, NO_WITNESS = (
    WhySurvived.UNREACHED,
    WhySurvived.TOLERATED,
    WhySurvived.UNINFECTED,
    WhySurvived.UNOBSERVED,
    WhySurvived.NO_WITNESS,
)
SITUATIONS = situations()


@pytest.fixture(scope="module")
def facts() -> Mapping[str, Facts]:
    """What was measured, by situation."""
    command = [sys.executable, "-m", "tests.survivor_facts", "--sample", str(SAMPLE)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [msgspec.json.decode(line, type=Facts) for line in done.stdout.splitlines()]
    return {one.id: one for one in found}


def all_with(*reasons: WhySurvived, second: WhySurvived | None = None) -> pytest.MarkDecorator:
    """Once per situation whose first reason is among these, or whose second is `second`."""
    chosen = [
        situation
        for situation in SITUATIONS
        if situation.reasons[0] in reasons or second in situation.reasons[1:]
    ]
    return pytest.mark.parametrize("situation", chosen, ids=[s.id for s in chosen])


def test_the_situations_are_the_frozen_ones() -> None:
    assert hashlib.sha256(FROZEN.read_bytes()).hexdigest() == SITUATIONS_SHA256


def test_the_kernels_and_gates_are_the_frozen_ones() -> None:
    code = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in {".py", ".ini", ".toml"} and path != FROZEN:
            code.update(path.relative_to(FOLDER).as_posix().encode() + b"\0")
            code.update(path.read_bytes() + b"\0")
    assert code.hexdigest() == CODE_SHA256


def test_there_are_twelve_situations_of_each_reason() -> None:
    assert Counter(s.reasons[0] for s in SITUATIONS) == dict.fromkeys(WhySurvived, 12)
    assert len({s.id for s in SITUATIONS}) == 60
    assert len({(s.subject, s.gate, s.after) for s in SITUATIONS}) == 60


def test_they_are_spread_over_kernels_gates_and_pairs_of_causes() -> None:
    assert len({s.subject for s in SITUATIONS}) >= 10
    assert len({s.gate for s in SITUATIONS}) >= 6
    assert sum(len(s.reasons) == 2 for s in SITUATIONS) >= 8


@pytest.mark.parametrize("situation", SITUATIONS, ids=[s.id for s in SITUATIONS])
def test_an_edit_applies_exactly_once_and_still_parses(situation: Situation) -> None:
    compile(mutant(situation), situation.file, "exec")


@pytest.mark.parametrize("situation", SITUATIONS, ids=[s.id for s in SITUATIONS])
def test_a_label_has_what_its_reasons_call_for(situation: Situation) -> None:
    assert len(situation.reasons) == len(set(situation.reasons)) in (1, 2)
    assert bool(situation.blind_axes) == (UNINFECTED in situation.reasons)
    assert bool(situation.guards) == (UNOBSERVED in situation.reasons)
    assert bool(situation.witness) == (NO_WITNESS not in situation.reasons)
    assert all(axis.partition(":")[0] in AXES for axis in situation.blind_axes)


@pytest.mark.parametrize("situation", SITUATIONS, ids=[s.id for s in SITUATIONS])
def test_the_gate_accepts_original_and_mutant(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    found = facts[situation.id]
    assert found.accepts_original
    assert found.accepts_mutant
    assert found.same_inputs_on_gate


@pytest.mark.parametrize("situation", SITUATIONS, ids=[s.id for s in SITUATIONS])
def test_the_changed_line_runs_unless_it_is_unreached(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    found = facts[situation.id]
    assert found.reached == (situation.reasons[0] is not UNREACHED)
    assert found.calls or not found.reached


@pytest.mark.parametrize("situation", SITUATIONS, ids=[s.id for s in SITUATIONS])
def test_bits_differ_on_the_gates_own_inputs_where_they_are_tolerated_and_nowhere_else(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    assert facts[situation.id].same_bits_on_gate == (situation.reasons[0] is not TOLERATED)


@all_with(TOLERATED)
def test_what_is_tolerated_is_no_noise(situation: Situation, facts: Mapping[str, Facts]) -> None:
    assert facts[situation.id].beyond_noise_on_gate


@all_with(UNREACHED, TOLERATED, UNINFECTED)
def test_the_witness_differs_beyond_noise(situation: Situation, facts: Mapping[str, Facts]) -> None:
    in_values = UNOBSERVED not in situation.reasons
    assert facts[situation.id].beyond_noise_on_witness == in_values


@all_with(UNREACHED, UNINFECTED)
def test_the_comparison_would_let_the_witness_pass_where_it_is_a_cause_too(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    # None: the comparison of a suite, which looks at the result well.
    passes = facts[situation.id].comparator_accepts is True
    assert passes == (TOLERATED in situation.reasons)


@all_with(TOLERATED)
def test_the_comparison_rejects_the_witness_where_inputs_are_a_cause_too(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    # None: the comparison of a suite that never looks at the wrong result.
    rejects = facts[situation.id].comparator_accepts is False
    assert rejects == (UNINFECTED in situation.reasons)


@all_with(UNOBSERVED, second=UNOBSERVED)
def test_what_is_unobserved_shows_to_its_guards_and_never_in_values(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    found = facts[situation.id]
    assert found.same_bits_on_witness
    assert set(found.seen_by) == set(situation.guards)
    assert not found.original_seen_by
    assert (found.sampled, found.sampled_differ) == (SAMPLE, ())


@all_with(UNOBSERVED)
def test_a_guard_sees_it_on_the_gates_own_inputs_unless_they_are_a_cause_too(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    seen = set(facts[situation.id].seen_on_gate)
    assert seen == (set() if UNINFECTED in situation.reasons else set(situation.guards))


@all_with(NO_WITNESS)
def test_random_inputs_of_the_domain_give_the_same_bits_where_there_is_no_witness(
    situation: Situation, facts: Mapping[str, Facts]
) -> None:
    found = facts[situation.id]
    assert (found.sampled, found.sampled_differ) == (SAMPLE, ())
