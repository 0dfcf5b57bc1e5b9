"""Claims about the oracle gate: wrong kernels that it once accepted, beside right ones."""

from __future__ import annotations

import pytest

from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import GateRef, Judged, Limits, ShardRequest, Task
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA, Judge

BLOCKS = {"softmax": {"N": (32,)}, "argmax": {"N": (32,)}, "cross_entropy": {"V": (32,)}}


def say(
    judge: Judge, entry: str, operation: str, dtype: str, layouts: tuple[str, ...] = ("contiguous",)
) -> Verdict:
    """The oracle's verdict on `module:function` of the test data."""
    subject = Subject(
        entry,
        entry,
        operation,
        dtypes=(dtype,),
        layouts=layouts,
        blocks=BLOCKS.get(operation, {}),
        import_paths=(str(TESTDATA),),
    )
    request = ShardRequest(
        subject,
        gates=(GateRef("oracle", str(TESTDATA), None),),
        tasks=(Task(original(entry), "oracle", True),),
        limits=Limits(factor=0.0, minimum_s=120.0, baseline_s=120.0),
    )
    (said,) = [e.verdict for e in judge.server.ask(request) if isinstance(e, Judged)]
    return said


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("unwritten", ["masked_off_lanes", "fresh_memory"])
def test_a_maximum_with_what_nobody_wrote_is_caught(
    judge: Judge, unwritten: str, dtype: str
) -> None:
    entry = f"kernels_unwritten_maximum:softmax_over_{unwritten}"
    verdict = say(judge, entry, "softmax", dtype)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.NOT_REPEATABLE)
    assert verdict.detail.endswith("masked-off lane, is not NaN")


def test_a_maximum_with_memory_that_the_launcher_filled_is_right(judge: Judge) -> None:
    entry = "kernels_unwritten_maximum:softmax_over_memory_that_it_fills"
    assert say(judge, entry, "softmax", "float32").outcome is GateOutcome.ACCEPTED


@pytest.mark.parametrize("layouts", [("transposed",), ("contiguous", "row_padded", "expanded")])
@pytest.mark.parametrize("entry", ["first_for_both", "second_for_both"])
def test_an_argument_that_is_read_by_another_s_strides_is_caught(
    judge: Judge, entry: str, layouts: tuple[str, ...]
) -> None:
    verdict = say(judge, f"kernels_borrowed_strides:{entry}", "swiglu", "float32", layouts)
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.case.split("/")[3].endswith((":a", ":b"))


def test_an_argument_that_is_read_by_its_own_strides_is_right_in_every_layout(judge: Judge) -> None:
    layouts = ("contiguous", "transposed", "row_padded", "expanded")
    verdict = say(judge, "kernels_borrowed_strides:right", "swiglu", "float32", layouts)
    assert verdict.outcome is GateOutcome.ACCEPTED


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("entry", "recipe"),
    [
        ("softmax", ""),
        ("softmax_without_a_guard", "masked_rows"),
        ("softmax_from_minus_1000", "far_below"),
        ("softmax_from_minus_10000", "far_below"),
        ("argmax", ""),
        ("argmax_from_minus_1000", "far_below"),
        ("argmax_from_minus_10000", "far_below"),
    ],
)
def test_a_running_maximum_starts_below_every_row(
    judge: Judge, entry: str, recipe: str, dtype: str
) -> None:
    operation = entry.partition("_")[0]
    verdict = say(judge, f"kernels_running_maximum:{entry}", operation, dtype)
    if recipe:
        assert verdict.outcome is GateOutcome.REJECTED
        assert f"/{recipe}/" in verdict.case
    else:
        assert verdict.outcome is GateOutcome.ACCEPTED


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("entry", "caught_in"),
    [
        ("right", None),
        ("first_row_always_counts", "/"),
        ("no_row_is_one_row", "/ties/"),
        ("without_a_guard", "/masked_rows/"),
    ],
)
def test_the_mean_of_a_loss_is_over_the_rows_that_count(
    judge: Judge, entry: str, caught_in: str | None, dtype: str
) -> None:
    verdict = say(judge, f"kernels_ignored_rows:{entry}", "cross_entropy", dtype)
    if caught_in is None:
        assert verdict.outcome is GateOutcome.ACCEPTED
    else:
        assert verdict.outcome is GateOutcome.REJECTED
        assert caught_in in verdict.case


def test_an_update_that_the_last_program_alone_makes_plainly_is_caught(judge: Judge) -> None:
    verdict = say(judge, "kernels_last_update_is_plain:matmul", "matmul", "float32")
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.detail.startswith("with programs interleaved with late writes: ")
