from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from gatecert.errors import UsageError
from gatecert.oracle.index_tensors import INDEX_RULES, MASK_PATTERNS, Facts, Ints
from gatecert.oracle.specs import Tensor
from gatecert.oracle.streams import Stream

LENGTHS = np.array([9, 0, 16, 1])
FACTS: Mapping[str, tuple[tuple[int, ...], Facts]] = {
    "offsets": ((6,), Facts({"total": 97})),
    "lengths": ((7,), Facts({"most": 96, "block": 16, "least": 0})),
    "pages": ((4, 2), Facts({"pages": 9, "block": 8}, {"lengths": LENGTHS})),
    "segments": ((97,), Facts({"count": 5})),
    "permutation": ((40,), Facts()),
    "slots": ((30,), Facts({"count": 64})),
    "mask": (
        (6, 33),
        Facts({"true_hides": 0}, patterns=("random", "late", "causal", "lone", "all")),
    ),
}


def drawn(rule: str, turns: int = 60) -> list[Ints]:
    shape, facts = FACTS[rule]
    return [INDEX_RULES[rule].make(Stream(f"{rule} {turn}"), shape, facts) for turn in range(turns)]


def broken(rule: str, values: list[int] | list[list[int]], facts: Facts | None = None) -> str:
    return INDEX_RULES[rule].broken(np.array(values), facts or FACTS[rule][1]) or ""


def test_every_rule_is_tried_here() -> None:
    assert set(FACTS) == set(INDEX_RULES)


@pytest.mark.parametrize("rule", INDEX_RULES)
def test_what_a_rule_makes_is_valid_and_the_same_for_one_stream(rule: str) -> None:
    shape, facts = FACTS[rule]
    for first, second in zip(drawn(rule), drawn(rule), strict=True):
        assert first.shape == shape
        assert INDEX_RULES[rule].broken(first, facts) is None
        assert np.array_equal(first, second)
    assert len({values.tobytes() for values in drawn(rule)}) > (3 if rule == "mask" else 30)


def test_packed_sequences_have_every_length_that_matters() -> None:
    seen = {int(length) for offsets in drawn("offsets") for length in np.diff(offsets)}
    assert {0, 1} <= seen
    for block in (16, 32):
        assert {block - 1, block, block + 1} <= seen, block


def test_lengths_lie_around_blocks_and_at_their_ends() -> None:
    seen = {int(length) for lengths in drawn("lengths") for length in lengths}
    assert {0, 1, 15, 16, 17, 96} <= seen
    assert all(96 in lengths for lengths in drawn("lengths"))


def test_pages_are_live_once_and_behind_them_there_is_none() -> None:
    for table in drawn("pages"):
        live = np.arange(2) < -(-LENGTHS // 8)[:, None]
        assert len(np.unique(table[live])) == live.sum() == 5
        assert (table[~live] == -1).all()


def test_some_segments_are_empty_and_some_items_go_nowhere() -> None:
    assert any(len(np.unique(segments)) < 5 for segments in drawn("segments"))
    assert all((slots == -1).any() or slots.size for slots in drawn("slots"))
    assert sum((slots == -1).any() for slots in drawn("slots")) > 50


@pytest.mark.parametrize("pattern", MASK_PATTERNS)
def test_only_the_pattern_of_rows_hides_a_whole_row(pattern: str) -> None:
    for shape in ((6, 33), (2, 3, 5), (7,), (4, 1)):
        seen = MASK_PATTERNS[pattern](Stream(pattern), shape).any(axis=-1)
        assert seen.all() != (pattern == "rows")


def test_a_mask_may_be_turned_over() -> None:
    shape, facts = FACTS["mask"]
    turned = Facts({"true_hides": 1}, patterns=facts.patterns)
    plain = INDEX_RULES["mask"].make(Stream("m"), shape, facts)
    assert np.array_equal(1 - plain, INDEX_RULES["mask"].make(Stream("m"), shape, turned))


@pytest.mark.parametrize(
    ("rule", "values", "facts", "message"),
    [
        ("offsets", [1, 97], None, "must start at 0, but starts at 1"),
        ("offsets", [0, 50, 40, 97], None, "must not fall, but 50 is followed by 40"),
        ("offsets", [0, 50, 96], None, "must end at 97, but ends at 96"),
        ("lengths", [97], None, "must be from 0 to 96, but hold 97"),
        ("pages", [[0, 1], [-1, -1], [2, 9], [3, -1]], None, "its live pages must be from 0 to 8"),
        ("pages", [[0, 1], [-1, -1], [2, 0], [3, -1]], None, "page 0 is live twice"),
        ("pages", [[0], [-1], [2], [3]], None, "has 1 places a row, too few for its lengths"),
        ("segments", [0, 2, 1], None, "must not fall, but 2 is followed by 1"),
        ("segments", [0, 5], None, "must be from 0 to 4, but hold 5"),
        ("permutation", [0, 2, 2], None, "index 2 is there twice"),
        ("slots", [3, -1, -1, 3], None, "slot 3 is taken twice"),
        ("mask", [[1, 0], [0, 0]], None, "hides a whole row"),
    ],
)
def test_values_that_lead_nowhere_are_named(
    rule: str, values: list[int], facts: Facts | None, message: str
) -> None:
    assert message in broken(rule, values, facts)


def test_a_table_without_enough_pages_says_how_to_have_them() -> None:
    with pytest.raises(UsageError, match=r"there are 4 pages, but 5 are live; derive"):
        few = Facts({"pages": 4, "block": 8}, {"lengths": LENGTHS})
        INDEX_RULES["pages"].make(Stream("few"), (4, 2), few)


def test_a_rule_in_the_wrong_place_is_refused() -> None:
    with pytest.raises(UsageError, match=r'Tensor.offsets\("B N"\): offsets has 1 dim, not 2'):
        Tensor.offsets("B N", total="T")
    with pytest.raises(UsageError, match="unknown pattern 'casual'; did you mean 'causal'"):
        Tensor.mask("B N", patterns="casual")
    with pytest.raises(UsageError, match="'T-1' is no dim"):
        Tensor.offsets("B+1", total="T-1")
