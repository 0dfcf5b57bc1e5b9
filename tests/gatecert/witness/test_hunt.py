"""Claims about hunts, on a softmax whose gate tries rows of 8 and 16 values only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gatecert.gates.records import Reason
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.operators.records import ObservableBy, Reveal
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Failed, GateRef, Hunted, HuntRequest
from gatecert.subjects import Subject
from gatecert.witness.records import Change, Hunt, HuntBudget, HuntEnd, NoWitness, Stage, Witness
from tests.gatecert.gates import wrong_softmaxes
from tests.gatecert.gates.asking import TESTDATA

MODULE = TESTDATA / "kernels_one_block.py"
SUBJECT = Subject(
    "softmax",
    "kernels_one_block:softmax",
    "softmax",
    blocks={"N": (32,)},
    dims={"B": (2,), "N": (8, 16)},
    import_paths=(str(TESTDATA),),
    configs=1,
)
SHORT_BLOCK = ("LARGEST_BLOCK = 4096", "LARGEST_BLOCK = 32")
OTHER_BITS = (
    "tl.exp(x - tl.max(x, axis=0))",
    "tl.exp2((x - tl.max(x, axis=0)) * 1.4426950408889634)",
)
SAME_BITS = ("x / tl.sum(x, axis=0)", "(x + 0.0) / tl.sum(x, axis=0)")
DIES = (
    "    y = torch.empty_like(x)",
    "    y = torch.empty_like(x)\n    x.shape[1] > 32 and __import__('os').abort()",
)
RAISES = ("    n_rows, n_cols = x.shape", "    n_rows, n_cols = x.shape\n    assert n_cols < 100")


class Refused(Exception):
    """The server could not hunt."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def hunt(
    server: Server,
    edit: tuple[str, str],
    *,
    cases: int = 30,
    reveal: tuple[Reveal, ...] = (),
    observable_by: tuple[ObservableBy, ...] = (),
    gate: str = "oracle:listed",
) -> Hunt:
    text = MODULE.read_text()
    assert text.count(edit[0]) == 1
    files = {str(MODULE): text.replace(*edit)}
    mutant = Candidate("mutant", CandidateKind.MUTANT, "softmax", files, reveal=reveal)
    return ask(server, SUBJECT, mutant, cases=cases, observable_by=observable_by, gate=gate)


def ask(
    server: Server,
    subject: Subject,
    mutant: Candidate,
    *,
    cases: int,
    observable_by: tuple[ObservableBy, ...] = (),
    gate: str = "oracle:quick",
) -> Hunt:
    budget = HuntBudget(600.0, cases)
    ref = GateRef(gate, str(TESTDATA))
    # To its end: what is left unread would answer the next request.
    events = list(server.ask(HuntRequest(subject, ref, mutant, observable_by, budget)))
    for event in events:
        if isinstance(event, Failed):
            raise Refused(event.message)
    (found,) = (event.hunt for event in events if isinstance(event, Hunted))
    return found


def test_a_witness_past_the_block_is_found_and_names_the_axis(server: Server) -> None:
    found = hunt(server, SHORT_BLOCK, reveal=(Reveal.TAIL,)).found
    assert isinstance(found, Witness)
    assert found.stage is Stage.CALLED
    (change,) = found.changes
    assert (change.axis, change.own in ("8", "16"), int(change.witness) > 32) == (
        "dim N",
        True,
        True,
    )
    assert found.reason in (Reason.VALUES, Reason.NONFINITE)
    assert found.tried.end is HuntEnd.FOUND


def test_without_a_tag_the_axes_find_it_too_and_it_is_brought_near(server: Server) -> None:
    found = hunt(server, SHORT_BLOCK).found
    assert isinstance(found, Witness)
    assert [change.axis for change in found.changes] == ["dim N"]


def test_two_hunts_differ_in_their_seconds_alone(server: Server) -> None:
    first, second = (hunt(server, OTHER_BITS, cases=12) for _ in range(2))
    assert msgspec.structs.replace(first, seconds=0.0) == msgspec.structs.replace(
        second, seconds=0.0
    )


def test_other_bits_within_tolerance_are_no_witness_and_their_error_is_told(server: Server) -> None:
    found = hunt(server, OTHER_BITS).found
    assert isinstance(found, NoWitness)
    assert (found.tried.cases, found.tried.end) == (30, HuntEnd.CASES)
    assert found.tried.other_bits > 10
    assert 0.0 < found.tried.largest < 1.0
    assert found.tried.largest_case.startswith("softmax/")
    assert {Stage.ONE_AXIS, Stage.TWO_AXES, Stage.RANDOM} <= set(found.tried.by_stage)
    assert {"dim N", "dim B", "recipe"} <= set(found.tried.by_axis)


def test_equal_bits_are_told(server: Server) -> None:
    found = hunt(server, SAME_BITS, cases=12).found
    assert isinstance(found, NoWitness)
    assert (found.tried.other_bits, found.tried.largest) == (0, 0.0)


def test_a_mutant_that_takes_its_process_down_has_a_witness(server: Server) -> None:
    found = hunt(server, DIES, reveal=(Reveal.TAIL,)).found
    assert isinstance(found, Witness)
    assert (found.reason, found.detail) == (Reason.NONE, "died of signal 6")
    assert [change.axis for change in found.changes] == ["dim N"]


def test_one_that_raises_where_the_original_does_not_has_a_witness(server: Server) -> None:
    found = hunt(server, RAISES, reveal=(Reveal.LONG,)).found
    assert isinstance(found, Witness)
    assert (found.reason, found.changes[0].axis) == (Reason.RAISED, "dim N")


def test_what_only_further_runs_show_is_looked_for_in_the_gates_own_cases_first(
    server: Server,
) -> None:
    every_other = (
        "    y = torch.empty_like(x)",
        "    y = torch.empty_like(x)\n    calls.append(0)\n    x = x * (1 + len(calls) // 2)",
    )
    text = ("LARGEST_BLOCK = 4096", "LARGEST_BLOCK = 4096\ncalls = []")
    assert MODULE.read_text().count(text[0]) == 1
    both = MODULE.read_text().replace(*every_other).replace(*text)
    found = hunt(server, (MODULE.read_text(), both), observable_by=(ObservableBy.REPEAT,)).found
    assert isinstance(found, Witness)
    assert (found.stage, found.reason) == (Stage.RUNS, Reason.NOT_REPEATABLE)
    assert found.changes == (Change("runs", "in turn", "all"),)


def test_a_case_that_the_original_fails_is_no_witness_but_set_aside(server: Server) -> None:
    subject = Subject("softmax", f"{wrong_softmaxes.__name__}:short_block", "softmax")
    mutant = Candidate(
        "mutant",
        CandidateKind.MUTANT,
        "softmax",
        {wrong_softmaxes.__file__: Path(wrong_softmaxes.__file__).read_text() + "\n"},
        reveal=(Reveal.LONG,),
    )
    found = ask(server, subject, mutant, cases=20).found
    assert isinstance(found, NoWitness)
    assert found.tried.set_asides > 0
    assert "N=1025" in found.tried.set_aside[0].case
    assert found.tried.set_aside[0].why.startswith("softmax/original: rejected nonfinite: ")


def test_a_gate_without_cases_is_refused(server: Server) -> None:
    with pytest.raises(Refused, match="gate 'metamorphic' has no cases for subject 'softmax'"):
        hunt(server, SAME_BITS, gate="metamorphic")


def test_of_a_mask_without_a_witness_every_small_size_is_tried_and_told(server: Server) -> None:
    found = hunt(server, SAME_BITS, cases=10, reveal=(Reveal.TAIL,)).found
    assert isinstance(found, NoWitness) and found.small is not None
    assert (found.small.dims, found.small.bound, found.small.cases) == (("B", "N"), 16, 256)
    assert found.tried.by_stage[Stage.SMALL] == 256
    other = hunt(server, SAME_BITS, cases=10, reveal=(Reveal.NEGATIVE,)).found
    assert isinstance(other, NoWitness) and other.small is None


def test_a_small_size_that_no_other_stage_tried_is_a_witness(server: Server) -> None:
    wrong = (
        "    n_rows, n_cols = x.shape",
        "    n_rows, n_cols = x.shape\n    assert (n_rows, n_cols) != (13, 11)",
    )
    found = hunt(server, wrong, cases=5, reveal=(Reveal.TAIL,)).found
    assert isinstance(found, Witness) and found.stage is Stage.SMALL
    assert "B=13,N=11" in found.case
