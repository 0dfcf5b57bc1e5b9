"""One bug per mutant, at a place whose name survives edits elsewhere."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatecert.errors import InternalError
from gatecert.mutants.discover import find_kernels
from gatecert.mutants.plant import apply_edits, overlay_of, plant
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.records import Edit, Operator, Site
from gatecert.operators.registry import all_operators
from tests.mutants.kernels import SCALE, only_kernel, plant_all, replacer

GOLDEN = Path(__file__).parent / "golden"
TWICE = replacer("twice", "2.0", "3.0", "4.0")


def test_ids_name_subject_function_operator_and_variant() -> None:
    ids = [mutant.id for mutant in plant_all(SCALE, TWICE, replacer("sub", "/", "*"))]
    assert [i.rpartition("/")[0] for i in ids] == [
        "subject/scale/twice.v0", "subject/scale/twice.v1",
        "subject/scale/twice.v0", "subject/scale/twice.v1", "subject/scale/sub",
    ]  # fmt: skip
    assert len(set(ids)) == 5


def test_equal_expressions_in_one_function_get_distinct_ordinals() -> None:
    first, second = (m.id.rpartition("/")[2] for m in plant_all(SCALE, replacer("o", "2.0", "3.0")))
    assert first.startswith("1-") and second.startswith("2-")
    assert first[2:] == second[2:]


_ABOVE = st.lists(
    st.sampled_from(["", "# a comment", "X = 2.0", "def other(x):\n    return x * 2.0 + x * 2.0"]),
    max_size=5,
).map(lambda lines: "".join(line + "\n" for line in lines))


@settings(max_examples=25, deadline=None)
@given(above=_ABOVE, below=_ABOVE, inside=st.sampled_from(["", "\n", "    # why\n", "\n\n"]))
def test_ids_do_not_depend_on_what_surrounds_them(above: str, below: str, inside: str) -> None:
    moved = above + SCALE.replace("    y = x", f"{inside}    y = x") + below
    assert [m.id for m in plant_all(moved, TWICE)] == [m.id for m in plant_all(SCALE, TWICE)]


def test_ids_do_not_depend_on_formatting() -> None:
    spread = SCALE.replace(
        "tl.load(x_ptr + cols, mask=cols < n, other=0.0)",
        "tl.load(\n        x_ptr+cols,  # where\n        mask=cols < n,\n        other=0.0,\n    )",
    )
    pad = replacer("pad", "0.0", "1.0")
    assert [m.id for m in plant_all(spread, pad)] == [m.id for m in plant_all(SCALE, pad)]


def test_a_statement_that_changes_changes_only_its_own_ids() -> None:
    changed = SCALE.replace("y = x * 2.0 + x * 2.0", "y = x * 2.0")
    operators = (TWICE, replacer("pad", "0.0", "1.0"))
    before = {m.id for m in plant_all(SCALE, *operators)}
    after = {m.id for m in plant_all(changed, *operators)}
    assert before & after == {i for i in before if "/pad/" in i}


def test_the_same_text_is_one_mutant_and_names_both_operators() -> None:
    mutants = plant_all(
        SCALE, replacer("first", "x * 2.0 +", "x * 3.0 +"), replacer("second", "2.0", "3.0")
    )
    assert [(m.operator, m.also) for m in mutants] == [("first", ("second",)), ("second", ())]


def test_a_mutant_says_where_it_is_and_shows_a_minimal_diff() -> None:
    [mutant] = plant_all(SCALE, replacer("pad", "other=0.0", "other=1.0"))
    assert mutant.line == 8
    changed = [line for line in mutant.diff.splitlines() if line[0] in "+-"]
    assert changed == [
        "--- a/acme/scale.py",
        "+++ b/acme/scale.py",
        "-    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)",
        "+    x = tl.load(x_ptr + cols, mask=cols < n, other=1.0)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("2.0", "2.0", "nothing changes"),
        ("2.0", "(", "does not parse"),
    ],
)
def test_an_operator_that_plants_nonsense_is_our_error(old: str, new: str, says: str) -> None:
    with pytest.raises(InternalError, match=f"operator bad at scale, line 9: .*{says}"):
        plant_all(SCALE, replacer("bad", old, new))


def test_an_operator_that_fails_is_named() -> None:
    def fails(kernel: KernelSyntax) -> Iterator[Site]:
        raise ValueError("no such loop")
        yield

    with pytest.raises(InternalError, match="operator bad failed on scale: ValueError: no such"):
        plant_all(SCALE, Operator("bad", "class", "summary", "textbook", fails, (), ()))


def test_edits_are_made_at_the_offsets_of_the_given_text() -> None:
    assert apply_edits("abcdef", [Edit(4, 5, "X"), Edit(1, 1, "--"), Edit(1, 3, "")]) == "a--dXf"


@pytest.mark.parametrize(
    "edits", [[Edit(0, 3, ""), Edit(2, 4, "")], [Edit(5, 9, "")], [Edit(3, 2, "")]]
)
def test_edits_that_overlap_or_leave_the_text_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(InternalError, match="overlap or leave"):
        apply_edits("abcdef", edits)


def test_an_overlay_is_refused_once_the_source_has_changed() -> None:
    [mutant] = plant_all(SCALE, replacer("pad", "other=0.0", "other=1.0"))
    assert overlay_of(mutant, {mutant.path: SCALE})[mutant.path] == SCALE.replace(
        "other=0.0", "other=1.0"
    )
    with pytest.raises(InternalError, match="changed since"):
        overlay_of(mutant, {mutant.path: SCALE + "\n"})


@pytest.mark.parametrize("name", ["softmax_rows", "matmul_tiles"])
def test_the_catalogue_plants_what_the_golden_file_says(name: str) -> None:
    """Run with GATECERT_UPDATE_GOLDEN=1 to accept a change, and read its diff."""
    source = GOLDEN / f"{name}.py.txt"
    text = source.read_text(encoding="utf-8")
    [kernel] = find_kernels(name, str(source), text)[0]
    planted = "\n".join(
        f"{m.id}\n{m.detail}\n{' '.join(o.value for o in m.observable_by)} | "
        f"{' '.join(r.value for r in m.reveal)}{'' if m.scored else ' | ladder'}\n{m.diff}"
        for m in plant("golden", kernel, text, all_operators())
    )
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("GATECERT_UPDATE_GOLDEN") == "1":
        golden.write_text(planted, encoding="utf-8")
    expected = golden.read_text(encoding="utf-8")
    assert planted == expected, "\n".join(
        difflib.unified_diff(expected.splitlines(), planted.splitlines(), "golden", "planted")
    )


def test_the_kernel_of_a_text_is_planted_through_its_own_record() -> None:
    kernel = only_kernel(SCALE)
    assert plant("s", kernel, SCALE, (TWICE,))[0].module == "acme.scale"
