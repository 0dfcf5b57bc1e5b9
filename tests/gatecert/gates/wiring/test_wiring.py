"""Every weakness is named from its evidence, and from nothing less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.gates.evidence import (
    BY_HAND,
    Compared,
    Evidence,
    LaunchInputs,
    TestTally,
    UnequalZip,
    WatchedTest,
)
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.wiring.rules import RULES, reasons, weaknesses
from gatecert.gates.wiring.weaknesses import NamedWeakness, Weakness
from gatecert.mutants.adversaries import ADVERSARIES as ALL_ADVERSARIES
from gatecert.subjects import Subject

KERNEL = "acme.kernels:softmax_kernel"
SUBJECT = Subject("softmax", "acme:softmax", dtypes=("float32",))
SHAPES = ((4, 33), (4, 33))


def launch(rows: int, cols: int, **changes: Any) -> LaunchInputs:
    """A launch with a tail, several programs, both signs and a loop of two turns."""
    fields: dict[str, Any] = {
        "shapes": (("x_ptr", (rows, cols)), ("y_ptr", (rows, cols))),
        "dtypes": ("float32", "float32"),
        "blocks": (("BLOCK", 32),),
        "negative": True,
        "programs": rows,
        "masked": True,
        "longest_loop": 2,
    }
    return LaunchInputs(KERNEL, **{**fields, **changes})


def close(passed: bool = True, **changes: Any) -> Compared:
    """A comparison by `torch.allclose` with a tight tolerance."""
    fields: dict[str, Any] = {
        "atol": 1e-5, "rtol": 1e-5, "shapes": SHAPES, "dtypes": ("float32", "float32"),
        "wrong_by": 1e-3, "of_default": 2.0, "used": 0.01,
    }  # fmt: skip
    return Compared("torch.allclose", passed, **{**fields, **changes})


def by_hand(*ops: str, **changes: Any) -> Compared:
    """Numbers read out of what was made of two tensors."""
    return Compared(BY_HAND, True, shapes=changes.pop("shapes", SHAPES), ops=ops, **changes)


STRONG = Evidence(
    entry_calls=2,
    entry_raised=0,
    entry_inputs=(
        LaunchInputs("acme:softmax", (("argument 0", (4, 33)),), ("float32",), negative=True),
        LaunchInputs("acme:softmax", (("argument 0", (8, 100)),), ("float32",), negative=True),
    ),
    compared=(close(), close(shapes=((8, 100), (8, 100)))),
    launches=(launch(4, 33), launch(8, 100)),
    tally=TestTally(passed=2),
    tests=(
        WatchedTest("test_a", True, calls=1, launches=1, compared=1),
        WatchedTest("test_b", True, calls=1, launches=1, compared=1),
    ),
)
STOPPED = Evidence(
    entry_calls=1,
    entry_raised=0,
    entry_inputs=STRONG.entry_inputs[:1],
    compared=(close(False),),
    tally=TestTally(failed=1),
    tests=(WatchedTest("test_a", False, calls=1, compared=1, said_no=1),),
)
"""What a gate shows that says no at the first comparison."""
ADVERSARIES = (
    "does_nothing", "returns_zeros", "returns_nan", "returns_last_output", "returns_freed_memory",
    "fewer_outputs", "wrong_element", "wrong_shape", "raises",
)  # fmt: skip


def changed(evidence: Evidence, **changes: Any) -> Evidence:
    return msgspec.structs.replace(evidence, **changes)


def answer(outcome: str, evidence: Evidence, loaded: bool = True) -> Verdict:
    return Verdict("a", "tests", GateOutcome(outcome), evidence=evidence, loaded=loaded)


def answers(**accepted: Evidence) -> dict[str, Verdict]:
    """Adversaries that are accepted, with what was seen; the others are rejected at once."""
    return {
        name: answer("accepted", accepted[name])
        if name in accepted
        else answer("rejected", STOPPED)
        for name in ADVERSARIES
    }


def named(
    original: Evidence = STRONG, subject: Subject = SUBJECT, **accepted: Evidence
) -> dict[Weakness, str]:
    found = weaknesses(subject, original, answers(**accepted), (KERNEL,))
    return {one.weakness: one.evidence for one in found}


def test_a_strong_gate_has_no_weakness() -> None:
    assert named() == {}


def test_every_weakness_has_a_rule_a_sentence_and_a_remedy() -> None:
    assert list(RULES) == list(Weakness)
    assert all(weakness.sentence and weakness.remedy for weakness in Weakness)
    assert Weakness("retries") is Weakness.RETRIES


def test_a_weakness_is_its_name_in_json() -> None:
    one = NamedWeakness(Weakness.RETRIES, "twice", "softmax")
    text = msgspec.json.encode(one)
    assert b'"weakness":"retries"' in text
    assert msgspec.json.decode(text, type=NamedWeakness) == one


def hollow(**says: str) -> Evidence:
    """A test that passes and whose source says so; all that it compares are numbers."""
    test = WatchedTest("test_a", True, calls=1, **says)  # type: ignore[arg-type]
    return changed(STRONG, compared=(by_hand("values", shapes=()),), tests=(test,))


MENDED = changed(STRONG, compared=(close(mended=("where",), elements_mended=9, times=2),))
NAN = changed(STRONG, compared=(by_hand("sub", "abs", "gt", "any", answer=False, nan=True),))
ANY = changed(STRONG, compared=(by_hand("sub", "abs", "lt", "any", answer=True),))
IN_PART = changed(STRONG, elements_compared=3, elements_given=8)
WARNED = changed(STRONG, warnings=("ratio 0.99 is more than 0.005",))
REFUSED = changed(
    STRONG,
    compared=(close(), close(False)),
    tests=(STRONG.tests[0], WatchedTest("test_b", True, calls=1, compared=1, said_no=1)),
)
OBJECTED = changed(
    STRONG,
    tests=(STRONG.tests[0], WatchedTest("test_b", True, compared=1, said_no=1, objected=1)),
)
NOTHING = changed(STRONG, compared=(by_hand("isnan", "any", shapes=()),))
MET_ANOTHER_SHAPE = changed(STRONG, compared=(close(shapes=((1, 4, 33), (4, 33))),))
GLOBAL = changed(STRONG, compared=(by_hand("sub", "square", "mean"), by_hand("sub", "abs", "max")))
ONLY_WHOLE = changed(STRONG, compared=(by_hand("cosine_similarity", "gt"),))
ONE_SHAPE = changed(STRONG, launches=(launch(4, 33), launch(4, 33, dtypes=("float16", "float16"))))


@pytest.mark.parametrize(
    ("weakness", "original", "accepted", "says"),
    [
        ("swallowed_exception", STRONG, {"raises": changed(STRONG, entry_raised=3)}, "3 times"),
        ("swallowed_exception", STRONG, {"returns_zeros": OBJECTED}, "comparisons raised once"),
        (
            "zipped_lists",
            changed(STRONG, zips=(UnequalZip("test_a.py:14", (3, 2)),)),
            {},
            "test_a.py:14 zips lists of 3 and 2 items on the original",
        ),
        (
            "zipped_lists",
            STRONG,
            {"fewer_outputs": changed(STRONG, compared=(close(),))},
            "1 comparisons are made in place of 2",
        ),
        (
            "empty_collection",
            changed(STRONG, tests=(WatchedTest("test_a", True, launches=1, idle_loop=True),)),
            {},
            "test_a",
        ),
        ("nothing_compared", NOTHING, {"returns_zeros": NOTHING}, "2 launches"),
        (
            "nothing_compared",
            changed(STRONG, compared=(close(shapes=((0, 33), (0, 33))),)),
            {"returns_zeros": STRONG},
            "all that is compared is empty",
        ),
        (
            "nothing_compared",
            changed(STRONG, between_outputs=2, between_others=1),
            {"returns_zeros": STRONG, "wrong_element": STRONG},
            "2 comparisons of what the entry gives with what else it gives",
        ),
        (
            "nothing_compared",
            changed(STRONG, between_others=2),
            {"returns_zeros": STRONG, "wrong_element": STRONG, "returns_nan": STRONG},
            "2 comparisons, and in none of them what the entry gives",
        ),
        ("warn_only", STRONG, {"returns_zeros": WARNED}, "returns_zeros is accepted with"),
        ("ignored_result", STRONG, {"returns_zeros": REFUSED}, "said no once in tests that"),
        ("ignored_result", changed(STRONG, tally=TestTally(passed=1, xpassed=2)), {}, "2 tests"),
        (
            "ignored_result",
            STRONG,
            {"returns_nan": changed(STRONG, tally=TestTally(passed=1, skipped=1))},
            "on returns_nan 1 test",
        ),
        (
            "always_true",
            STRONG,
            {"returns_zeros": hollow(always_true="test_a.py:3 asserts a generator")},
            "test_a.py:3 asserts a generator, and so passes on returns_zeros: test_a",
        ),
        (
            "mended_output",
            STRONG,
            {"returns_nan": MENDED},
            "on returns_nan where mends 9 elements of outputs before they are compared",
        ),
        ("nan_passes", STRONG, {"returns_nan": NAN}, "NaN passes sub, abs, gt, any by hand"),
        (
            "nan_passes",
            STRONG,
            {"returns_nan": hollow(none_beyond="test_a.py:3 asserts that no")},
            "an output of NaN passes: test_a.py:3",
        ),
        ("any_for_all", STRONG, {"wrong_element": ANY}, "what is asked is sub, abs, lt, any"),
        (
            "any_for_all",
            STRONG,
            {
                "wrong_element": changed(
                    STRONG,
                    compared=(
                        Compared("torch.isclose", False, shapes=SHAPES),
                        by_hand("isclose", "any", answer=True),
                    ),
                )
            },
            "what is asked is isclose, any",
        ),
        (
            "any_for_all",
            STRONG,
            {"wrong_element": hollow(any_of="test_a.py:3 asserts that any")},
            "one wrong element passes: test_a.py:3",
        ),
        ("partly_compared", STRONG, {"wrong_element": IN_PART}, "3 of 8 elements are compared"),
        ("stale_buffer", STRONG, {"returns_last_output": STRONG}, "each of 2 calls"),
        (
            "stale_buffer",
            changed(STRONG, entry_in_place=2),
            {"does_nothing": STRONG},
            "right values before the call",
        ),
        (
            "stale_buffer",
            changed(STRONG, entry_in_place=2),
            {"returns_last_output": STRONG},
            "each of 2 calls",
        ),
        ("freed_memory", STRONG, {"returns_freed_memory": STRONG}, "left values in"),
        ("freed_memory", STRONG, {"does_nothing": STRONG}, "nothing was written to"),
        (
            "broadcast_shape",
            STRONG,
            {"wrong_shape": MET_ANOTHER_SHAPE},
            "[1, 4, 33] passes against [4, 33] in torch.allclose",
        ),
        (
            "printed_text",
            changed(NOTHING, captured=2),
            {"returns_zeros": changed(NOTHING, captured=2)},
            "read back 2 times",
        ),
        ("loose_tolerance", changed(STRONG, compared=(close(wrong_by=0.3),)), {}, "30% of itself"),
        (
            "loose_tolerance",
            changed(STRONG, compared=(close(atol=1e-2, of_default=900.0),)),
            {},
            "atol 0.01, rtol 1e-05",
        ),
        ("global_metric", STRONG, {"wrong_element": GLOBAL}, "sub, square, mean of tensors"),
        (
            "global_metric",
            STRONG,
            {"wrong_element": changed(STRONG, compared=(Compared("torch.isclose", False),))},
            "torch.isclose finds wrong",
        ),
        ("one_shape", ONE_SHAPE, {}, "x_ptr [4, 33], y_ptr [4, 33], BLOCK = 32: 2 launches"),
        (
            "aligned_shapes",
            changed(STRONG, launches=(launch(4, 32, masked=False), launch(8, 64, masked=False))),
            {},
            "no lane is ever masked off: 2 launches of 2 kinds (softmax_kernel has x_ptr [4, 32], "
            "y_ptr [4, 32], BLOCK = 32; softmax_kernel has x_ptr [8, 64], y_ptr [8, 64], "
            "BLOCK = 32)",
        ),
        (
            "aligned_shapes",
            changed(
                STRONG,
                launches=tuple(launch(n, 32, masked=False, times=9 - n) for n in range(1, 6)),
            ),
            {},
            "BLOCK = 32; and 2 more)",
        ),
        (
            "one_block",
            changed(STRONG, launches=(launch(4, 20, longest_loop=1), launch(8, 9, longest_loop=0))),
            {},
            "second turn",
        ),
        (
            "one_block",
            changed(
                STRONG,
                launches=(
                    launch(1, 20, longest_loop=None, programs=1),
                    launch(1, 9, longest_loop=None, programs=1),
                ),
            ),
            {},
            "second program",
        ),
        (
            "positive_inputs",
            changed(
                STRONG,
                entry_inputs=tuple(
                    msgspec.structs.replace(one, negative=False) for one in STRONG.entry_inputs
                ),
            ),
            {},
            "2 calls",
        ),
        (
            "positive_inputs",
            changed(
                STRONG,
                entry_inputs=(),
                launches=(launch(4, 33, negative=False), launch(8, 1, negative=None)),
            ),
            {},
            "1 launch",
        ),
    ],
)  # fmt: skip
def test_evidence_names_the_weakness_and_no_other(
    weakness: str, original: Evidence, accepted: dict[str, Evidence], says: str
) -> None:
    found = named(original, **accepted)
    assert list(found) == [Weakness(weakness)]
    assert says in found[Weakness(weakness)]


@pytest.mark.parametrize(
    ("captured", "detail", "expected"),
    [
        (2, "AssertionError: assert '1.00 2.00' == '0.00 0.00'", [Weakness.PRINTED_TEXT]),
        (2, "AssertionError: assert [1.0] == approx([0.0])", []),
        (0, "AssertionError: assert '1.00 2.00' == '0.00 0.00'", []),
    ],
)
def test_numbers_read_for_printing_are_no_comparison_where_the_no_is_over_text(
    captured: int, detail: str, expected: list[Weakness]
) -> None:
    read = changed(STRONG, compared=(by_hand("values", shapes=()),), captured=captured)
    no = msgspec.structs.replace(answer("rejected", STOPPED), detail=detail)
    said = dict.fromkeys(ADVERSARIES, no)
    assert [one.weakness for one in weaknesses(SUBJECT, read, said, (KERNEL,))] == expected


A_DIGEST = "AssertionError: assert '7ab93f1c...ee04b51' == '01c2d0ff...ab12cd0'"
A_TEXT = "AssertionError: assert 'tensor([0.1...3, -2.1000])' == 'tensor([0.0...0, 0.0000])'"


@pytest.mark.parametrize(
    ("original", "detail", "says"),
    [
        (changed(NOTHING, captured=2), A_TEXT, "read back 2 times"),
        (changed(NOTHING, shown=2), A_TEXT, "values are made text 2 times"),
        (NOTHING, "AssertionError: '[1.5, 2.5]' != '[0.0, 0.0]'", "texts differ"),
        (NOTHING, "/suite/readme.py:3: DocTestFailure", "texts differ"),
        (changed(NOTHING, captured=2, shown=5), A_DIGEST, ""),
        (changed(NOTHING, shown=5), "AssertionError: assert 1 == 0", ""),
        (changed(NOTHING, captured=1), "AssertionError: Traceback (most recent call last)", ""),
    ],
)
def test_text_is_to_blame_where_wrong_code_is_rejected_over_it(
    original: Evidence, detail: str, says: str
) -> None:
    no = msgspec.structs.replace(answer("rejected", STOPPED), detail=detail)
    found = weaknesses(SUBJECT, original, dict.fromkeys(ADVERSARIES, no), (KERNEL,))
    assert [one.weakness for one in found] == ([Weakness.PRINTED_TEXT] if says else [])
    assert says in "".join(one.evidence for one in found)


@pytest.mark.parametrize(
    ("ops", "is_named"),
    [
        (("sub", "abs", "le", "invert", "sum"), False),
        (("eq", "sum"), False),
        (("sub", "abs", "sum", "lt"), True),
        (("sub", "abs", "lt", "mean", "gt"), False),
    ],
)
def test_counting_wrong_elements_is_no_metric_of_the_whole(
    ops: tuple[str, ...], is_named: bool
) -> None:
    stopped = changed(STOPPED, compared=(by_hand(*ops),))
    said = {name: answer("rejected", stopped) for name in ADVERSARIES}
    original = changed(STRONG, compared=(by_hand(*ops),))
    found = {one.weakness for one in weaknesses(SUBJECT, original, said, (KERNEL,))}
    assert found == ({Weakness.GLOBAL_METRIC} if is_named else set())


def test_a_share_of_close_elements_is_a_metric_where_one_wrong_element_passes() -> None:
    share = changed(STRONG, compared=(by_hand("sub", "abs", "lt", "mean", "gt"),))
    count = changed(STRONG, compared=(by_hand("sub", "abs", "lt", "invert", "sum"),))
    assert set(named(wrong_element=share)) == {Weakness.GLOBAL_METRIC}
    assert named(wrong_element=count) == {}


def test_a_gate_that_knows_whole_tensors_only_is_named_even_if_it_sees_one_wrong_element() -> None:
    stopped = changed(STOPPED, compared=ONLY_WHOLE.compared)
    said = {name: answer("rejected", stopped) for name in ADVERSARIES}
    (found,) = weaknesses(SUBJECT, ONLY_WHOLE, said, (KERNEL,))
    assert found.weakness is Weakness.GLOBAL_METRIC
    assert "cosine_similarity, gt of tensors" in found.evidence


def test_declared_layouts_and_dtypes_are_held_against_what_was_passed() -> None:
    subject = Subject(
        "softmax",
        "acme:softmax",
        dtypes=("float32", "bfloat16"),
        layouts=("contiguous", "row_padded"),
    )
    assert named(subject=subject) == {
        Weakness.CONTIGUOUS_INPUTS: "row_padded declared; inputs are contiguous in 2 calls",
        Weakness.UNTESTED_DTYPES: "bfloat16 declared and never passed; passed: float32",
    }
    padded = msgspec.structs.replace(STRONG.entry_inputs[1], contiguous=False, dtypes=("bfloat16",))
    assert named(changed(STRONG, entry_inputs=(STRONG.entry_inputs[0], padded)), subject) == {}


def test_calls_of_the_entry_do_not_speak_for_tests_that_go_past_it() -> None:
    subject = Subject(
        "softmax", "acme:softmax", dtypes=("float32", "bfloat16"), layouts=("row_padded",)
    )
    positive = tuple(msgspec.structs.replace(one, negative=False) for one in STRONG.entry_inputs)
    past = WatchedTest("test_by_another_way", True, launches=2, compared=1)
    weak = changed(STRONG, entry_inputs=positive)
    assert set(named(weak, subject)) == {
        Weakness.POSITIVE_INPUTS, Weakness.CONTIGUOUS_INPUTS, Weakness.UNTESTED_DTYPES,
    }  # fmt: skip
    assert named(changed(weak, tests=(*STRONG.tests, past)), subject) == {}


@pytest.mark.parametrize(
    ("others", "is_named"),
    [
        ((), True),
        ((Compared("torch.equal", True, shapes=SHAPES, dtypes=("float32",) * 2, times=6),), False),
        ((close(times=2),), False),
        ((close(shapes=((), ()), times=6),), True),
    ],
)
def test_a_tolerance_is_loose_where_most_comparisons_of_tensors_have_it(
    others: tuple[Compared, ...], is_named: bool
) -> None:
    wide = close(wrong_by=0.5, of_default=500.0)
    said = named(changed(STRONG, compared=(wide, *others)))
    assert (Weakness.LOOSE_TOLERANCE in said) is is_named


def test_a_loose_look_at_one_number_does_not_speak_for_the_tensors() -> None:
    mean = close(wrong_by=0.5, of_default=500.0, shapes=((), ()), times=9)
    assert named(changed(STRONG, compared=(*STRONG.compared, mean))) == {}


TRIED_AGAIN = changed(
    STOPPED,
    entry_inputs=(msgspec.structs.replace(STRONG.entry_inputs[0], times=3),),
    compared=(close(False, times=3),),
    tests=(WatchedTest("test_a", False, calls=3, compared=3, said_no=3),),
)


@pytest.mark.parametrize(
    "seen",
    [
        TRIED_AGAIN,
        changed(TRIED_AGAIN, entry_inputs=()),
        changed(STOPPED, tally=TestTally(failed=1, reruns=3)),
        changed(STOPPED, tests=(WatchedTest("test_a", False, runs=3),)),
    ],
)
def test_a_second_try_after_a_no_is_a_retry(seen: Evidence) -> None:
    said = {**answers(), "returns_zeros": answer("rejected", seen)}
    found = weaknesses(SUBJECT, STRONG, said, (KERNEL,))
    assert [one.weakness for one in found] == [Weakness.RETRIES]


@pytest.mark.parametrize(
    ("adversary", "passed", "weakness", "says"),
    [
        ("raises", {"raised": 1}, "swallowed_exception", "test_weak"),
        ("returns_zeros", {"said_no": 1, "objected": 1}, "swallowed_exception", "raised once"),
        ("returns_zeros", {"said_no": 1}, "ignored_result", "said no once"),
        ("returns_zeros", {"warned": 1}, "warn_only", "'off by 3': test_weak"),
    ],
)
def test_a_weak_test_is_seen_beside_a_strong_one(
    adversary: str, passed: dict[str, int], weakness: str, says: str
) -> None:
    seen = changed(
        STOPPED,
        warnings=("off by 3",) if "warned" in passed else (),
        tests=(WatchedTest("test_weak", True, calls=1, **passed), STOPPED.tests[0]),
    )
    said = {**answers(), adversary: answer("rejected", seen)}
    (found,) = weaknesses(SUBJECT, STRONG, said, (KERNEL,))
    assert found.weakness.value == weakness
    assert says in found.evidence


NAN_FAILS = answer("rejected", changed(STOPPED, tests=(WatchedTest("test_weak", False),)))


@pytest.mark.parametrize(
    ("passed", "others"),
    [
        # Bit for bit, or else within a tolerance: a no, and then a yes on the same.
        ({"said_no": 1, "settled": 1}, {}),
        ({"said_no": 1, "objected": 1, "settled": 1, "settled_objected": 1}, {}),
        # By hand nothing says yes; but what is never within a tolerance fails.
        ({"said_no": 1}, {"returns_nan": NAN_FAILS}),
        ({"warned": 1}, {"returns_nan": NAN_FAILS}),
        ({"asserts_failed": 1}, {}),
    ],
)
def test_a_test_that_looks_twice_before_it_passes_ignores_nothing(
    passed: dict[str, int], others: dict[str, Verdict]
) -> None:
    seen = changed(
        STOPPED,
        warnings=("largest error 3e-7, half of the tolerance",) if "warned" in passed else (),
        tests=(WatchedTest("test_weak", True, calls=1, **passed), STOPPED.tests[0]),
    )
    said = {**answers(), **others, "returns_zeros": answer("rejected", seen)}
    assert weaknesses(SUBJECT, STRONG, said, (KERNEL,)) == ()


def test_assertions_that_fail_on_nan_in_tests_that_pass_are_swallowed() -> None:
    weak = WatchedTest("test_weak", True, calls=1, asserts_failed=1)
    seen = changed(STRONG, compared=(), tests=(weak,))
    every = {name: seen for name in ADVERSARIES if name != "raises"}
    assert named(**every) == {
        Weakness.SWALLOWED_EXCEPTION: "passed although assertions failed on returns_nan: test_weak"
    }
    teeth = changed(STRONG, tests=(*STRONG.tests, weak))
    assert named(teeth, returns_nan=teeth) == {}


def test_a_test_that_expects_an_exception_swallows_none() -> None:
    expects = WatchedTest("test_bad_input", True, calls=1, raised=1)
    original = changed(STRONG, entry_raised=1, tests=(*STRONG.tests, expects))
    seen = changed(STOPPED, entry_raised=2, tests=(expects, STOPPED.tests[0]))
    said = {**answers(), "raises": answer("rejected", seen)}
    assert weaknesses(SUBJECT, original, said, (KERNEL,)) == ()


def test_collecting_every_no_is_no_retry() -> None:
    both = changed(
        STOPPED,
        entry_inputs=STRONG.entry_inputs,
        compared=(close(False), close(False, shapes=((8, 100), (8, 100)))),
        tests=(WatchedTest("test_a", False, calls=2, compared=2, said_no=2),),
    )
    said = {**answers(), "returns_zeros": answer("rejected", both)}
    assert weaknesses(SUBJECT, STRONG, said, (KERNEL,)) == ()


def test_calling_the_entry_again_to_say_what_is_wrong_is_no_retry() -> None:
    """It fails although the second output, which is right, was found so."""
    either_way = changed(
        STOPPED,
        compared=(close(False), close()),
        tests=(WatchedTest("test_a", False, calls=2, compared=2, said_no=1, ends_on_yes=True),),
    )
    said = {
        **answers(),
        "returns_zeros": answer("rejected", TRIED_AGAIN),
        "returns_last_output": answer("rejected", either_way),
    }
    assert weaknesses(SUBJECT, STRONG, said, (KERNEL,)) == ()


def test_a_second_call_that_saves_a_test_is_a_retry_however_it_compares() -> None:
    def called(times: int, passed: bool) -> Evidence:
        return changed(STRONG, tests=(WatchedTest("test_a", passed, calls=times, compared=times),))

    said = {
        **answers(),
        "returns_zeros": answer("rejected", called(3, False)),
        "returns_last_output": answer("accepted", called(2, True)),
    }
    (found,) = weaknesses(SUBJECT, STRONG, said, (KERNEL,))
    assert found.weakness is Weakness.RETRIES
    assert found.evidence == (
        "returns_last_output: test_a called the entry 2 times, on the original once, and passed"
    )
    assert reasons("returns_last_output", [found]) == (Weakness.RETRIES,)


def test_calling_the_entry_again_to_word_a_message_is_no_retry() -> None:
    worded = changed(
        TRIED_AGAIN,
        tests=(
            WatchedTest("test_a", False, calls=2, compared=1, said_no=1),
            WatchedTest("test_b", False, calls=2, compared=1, said_no=1),
        ),
    )
    said = {**answers(), "returns_zeros": answer("rejected", worded)}
    assert weaknesses(SUBJECT, STRONG, said, (KERNEL,)) == ()


def test_a_library_that_draws_more_inputs_after_a_no_is_no_retry() -> None:
    drawn = changed(
        TRIED_AGAIN, tests=(msgspec.structs.replace(TRIED_AGAIN.tests[0], generated=True),)
    )
    said = {**answers(), "returns_zeros": answer("rejected", drawn)}
    assert weaknesses(SUBJECT, STRONG, said, (KERNEL,)) == ()


@pytest.mark.parametrize(
    ("original", "accepted"),
    [
        # An exception that nobody saw raised: the entry was never called.
        (STRONG, {"raises": STRONG}),
        # A warning that the original brings about as well, with another number.
        (changed(STRONG, warnings=("ratio 0.001 is more than 0.0005",)), {"returns_zeros": WARNED}),
        # A no that is expected: the original gets it too.
        (REFUSED, {"returns_zeros": REFUSED}),
        # The last output is right by chance: so is memory.
        (STRONG, {"wrong_shape": STRONG}),
        # Fewer outputs, and as many comparisons.
        (STRONG, {"fewer_outputs": STRONG}),
        # Fewer comparisons, by a gate that accepts whatever it compares.
        (
            STRONG,
            {"fewer_outputs": changed(STRONG, compared=(close(),)), "returns_zeros": STRONG},
        ),
        # Outputs beside outputs, and something else as well; or a gate that sees what is wrong.
        (
            changed(STRONG, between_outputs=2, with_outputs=1),
            {"returns_zeros": STRONG, "wrong_element": STRONG},
        ),
        (changed(STRONG, between_outputs=2), {"returns_zeros": STRONG}),
        (
            changed(STRONG, between_others=2),
            {"returns_zeros": STRONG, "wrong_element": STRONG},
        ),
        # Buffers of one size, of which each launch fills another part.
        (changed(ONE_SHAPE, resized=(KERNEL,)), {}),
        # An assertion that holds anyhow, in a test that wrong values do not get past.
        (STRONG, {"wrong_shape": hollow(always_true="test_a.py:3 asserts a tuple")}),
        # The original is mended as well, in as many elements (rows that are masked, say).
        (changed(STRONG, compared=(close(), MENDED.compared[0])), {"returns_nan": MENDED}),
        # NaN, by a gate that accepts zeros too, or warns of it; or another comparison passes it.
        (STRONG, {"returns_nan": STRONG}),
        (STRONG, {"returns_nan": changed(NAN, compared=(by_hand("sub", "abs", "max"),))}),
        (
            STRONG,
            {"returns_nan": changed(hollow(none_beyond="test_a.py:3"), compared=(close(),))},
        ),
        # Whether anything is far off, or nothing is near; or another comparison beside it.
        (STRONG, {"wrong_element": changed(STRONG, compared=(by_hand("sub", "gt", "any"),))}),
        (
            STRONG,
            {"wrong_element": changed(ANY, compared=(by_hand("sub", "lt", "any", answer=False),))},
        ),
        (STRONG, {"wrong_element": changed(ANY, compared=(*ANY.compared, close()))}),
        (STRONG, {"wrong_element": changed(hollow(any_of="test_a.py:3"), compared=(close(),))}),
        # Pieces that may be all of it, or beside a comparison of the whole; or zeros pass as well.
        (STRONG, {"wrong_element": changed(IN_PART, elements_compared=8)}),
        (STRONG, {"wrong_element": changed(IN_PART, whole=1)}),
        (STRONG, {"wrong_element": IN_PART, "returns_zeros": STRONG}),
        # One wrong element, within a tolerance for each.
        (STRONG, {"wrong_element": STRONG}),
        # A wide tolerance of which correct code needs half.
        (changed(STRONG, compared=(close(wrong_by=0.4, of_default=50.0, used=0.5),)), {}),
        # A wide tolerance in one comparison of three.
        (changed(STRONG, compared=(close(wrong_by=0.4), close(atol=1e-6, times=2))), {}),
        # A test that compares nothing beside others that do.
        (changed(STRONG, compared_nothing=("test_shape",)), {}),
        # Text is read back, and values are compared.
        (changed(STRONG, captured=3, shown=3), {}),
        # Kernels without a mask, a loop or a program number have no such blind spot.
        (
            changed(
                STRONG,
                launches=tuple(
                    launch(n, n, masked=None, longest_loop=None, programs=None) for n in (3, 4)
                ),
            ),
            {},
        ),
    ],
)
def test_less_than_the_evidence_names_nothing(
    original: Evidence, accepted: dict[str, Evidence]
) -> None:
    assert named(original, **accepted) == {}


def test_what_explains_a_yes_already_is_named_alone() -> None:
    hollow_tuple = changed(
        REFUSED,
        tests=(WatchedTest("test_a", True, calls=1, said_no=1, always_true="test_a.py:3"),),
    )
    assert set(named(returns_zeros=hollow_tuple)) == {Weakness.ALWAYS_TRUE}
    mended = changed(NAN, compared=(*NAN.compared, *MENDED.compared))
    assert set(named(returns_nan=mended)) == {Weakness.MENDED_OUTPUT}
    warned = changed(NAN, warnings=("off by nan",))
    assert set(named(returns_nan=warned)) == {Weakness.WARN_ONLY}


def test_memory_and_stale_buffers_are_not_blamed_on_a_gate_that_accepts_zeros() -> None:
    every = dict.fromkeys(("does_nothing", "returns_zeros", "returns_last_output"), STRONG)
    assert named(**every) == {}


def test_only_the_subjects_own_kernels_count() -> None:
    other = msgspec.structs.replace(launch(64, 64, masked=True), kernel="acme.other:kernel")
    original = changed(STRONG, launches=(launch(4, 32, masked=False), other))
    assert Weakness.ALIGNED_SHAPES in named(original)
    assert Weakness.ONE_SHAPE in named(original)


def test_an_adversary_that_was_not_loaded_shows_nothing() -> None:
    said = {"raises": answer("accepted", changed(STRONG, entry_raised=3), loaded=False)}
    assert weaknesses(SUBJECT, STRONG, said, (KERNEL,)) == ()


def test_reasons_are_the_weaknesses_that_let_an_adversary_pass() -> None:
    has = [NamedWeakness(w, "") for w in (Weakness.BROADCAST_SHAPE, Weakness.WARN_ONLY)]
    assert reasons("wrong_shape", has) == (Weakness.BROADCAST_SHAPE, Weakness.WARN_ONLY)
    assert reasons("raises", has) == (Weakness.WARN_ONLY,)
    assert reasons("raises", has[:1]) == ()


def test_the_documentation_has_a_row_for_every_weakness_and_adversary() -> None:
    text = (Path(__file__).parents[4] / "docs" / "gates.md").read_text()
    assert [weakness for weakness in Weakness if f"| `{weakness.value}` |" not in text] == []
    assert [name for name in ALL_ADVERSARIES if f"`{name}`" not in text] == []
