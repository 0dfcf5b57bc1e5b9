"""What a person ignores is ignored, with the reason, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gatecert.errors import UsageError
from gatecert.mutants.discover import find_kernels
from gatecert.mutants.plant import plant
from gatecert.mutants.records import Ignored, Mutant
from gatecert.mutants.suppression import (
    Entry,
    find_comments,
    idle_rules,
    ignore_comment,
    ignored_mutants,
    parse_ignore_file,
)
from gatecert.operators.registry import all_operators
from tests.runs import mutant

PATH = "kernels.py"
KERNELS = Path(__file__).parents[1] / "testdata" / "kernels_softmax.py"
NAMES = tuple(operator.name for operator in all_operators())

SOURCE = '''\
@decorated
@triton.jit
def kernel(p, n):
    """A kernel."""
    x = load(p)
    y = store(
        p,
        x,
    )
    if n:
        z = x + y
    return z


def other(p):
    return p
'''


def lines_covered(text: str) -> list[range]:
    return [range(c.first, c.last + 1) for c in find_comments(PATH, text)]


def with_line(number: int, comment: str) -> str:
    """The source with a comment line put above a line."""
    lines = SOURCE.splitlines(keepends=True)
    indent = lines[number - 1][: len(lines[number - 1]) - len(lines[number - 1].lstrip())]
    lines.insert(number - 1, f"{indent}{comment}\n")
    return "".join(lines)


def with_end(number: int, comment: str) -> str:
    """The source with a comment at the end of a line."""
    lines = SOURCE.splitlines()
    lines[number - 1] += f"  {comment}"
    return "\n".join(lines) + "\n"


COMMENT = "# gatecert: ignore[drop-load-mask] the caller pads"


@pytest.mark.parametrize(
    ("line", "covered"),
    [(5, range(5, 6)), (6, range(6, 10)), (8, range(6, 10)), (10, range(10, 11))],
)
def test_at_the_end_of_a_line_it_covers_the_statement(line: int, covered: range) -> None:
    assert lines_covered(with_end(line, COMMENT)) == [covered]


@pytest.mark.parametrize(
    ("line", "covered"),
    [(5, range(6, 7)), (6, range(7, 11)), (8, range(6, 11)), (11, range(12, 13))],
)
def test_on_a_line_of_its_own_it_covers_the_next_statement(line: int, covered: range) -> None:
    assert lines_covered(with_line(line, COMMENT)) == [covered]


@pytest.mark.parametrize("text", [with_line(n, COMMENT) for n in (1, 2, 3)])
def test_above_a_function_or_its_decorators_it_covers_all_of_it(text: str) -> None:
    (covered,) = lines_covered(text)
    body = {number for number, line in enumerate(text.splitlines(), 1) if line.startswith("    ")}
    inside = {number for number in body if number < text[: text.index("def other")].count("\n")}
    assert inside <= set(covered)
    assert text.splitlines().index("def other(p):") + 1 not in covered


def test_as_the_first_line_of_a_body_it_does_not_cover_the_function() -> None:
    assert lines_covered(with_line(4, COMMENT)) == [range(5, 6)]


def test_at_the_end_of_a_file_it_covers_nothing() -> None:
    assert lines_covered(SOURCE + COMMENT + "\n") == [range(1)]


def test_several_names_share_a_reason() -> None:
    text = with_end(5, "# gatecert: ignore[drop-load-mask, wrong-constant] the caller pads")
    assert [(c.operator, c.reason) for c in find_comments(PATH, text)] == [
        ("drop-load-mask", "the caller pads"),
        ("wrong-constant", "the caller pads"),
    ]


def test_it_may_stand_behind_another_comment() -> None:
    text = with_end(5, f"# noqa: E501  {COMMENT}")
    assert [c.line for c in find_comments(PATH, text)] == [5]


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# gatecert: ignore[drop-load-mask]", "needs a reason"),
        ("# gatecert: ignore[drop-load-mask]  : ", "needs a reason"),
        ("# gatecert: ignore the caller pads", "names its operators"),
        ("# gatecert: ignore[] the caller pads", "names its operators"),
        ("# gatecert: ignore[*] the caller pads", "names its operators"),
        ("# gatecert: ignroe[drop-load-mask] the caller pads", "unknown comment"),
    ],
)
def test_a_comment_that_ignores_nothing_by_mistake_is_refused_with_its_place(
    comment: str, said: str
) -> None:
    with pytest.raises(UsageError, match=rf"^kernels\.py:5: .*{said}"):
        find_comments(PATH, with_end(5, comment))


@pytest.mark.parametrize("comment", ["# gatecert: see the docs", "# about gatecert"])
def test_prose_that_speaks_of_gatecert_is_no_directive(comment: str) -> None:
    assert find_comments(PATH, with_end(5, comment)) == ()


def test_text_in_a_string_is_no_comment() -> None:
    assert find_comments(PATH, f'x = "{COMMENT}"\n') == ()


def at(line: int, operator: str = "drop-load-mask", **changes: object) -> Mutant:
    return mutant(f"s/kernel/{operator}/1-aaaaaa", path=PATH, line=line, **changes)


def ignored(text: str, *mutants: Mutant) -> tuple[Ignored, ...]:
    return ignored_mutants(mutants, {PATH: text}, find_comments(PATH, text), ())


def test_it_ignores_that_operator_on_that_statement_alone() -> None:
    text = with_end(5, COMMENT)
    (one,) = ignored(text, at(5), at(6), at(5, "wrong-constant"))
    assert one == Ignored("s/kernel/drop-load-mask/1-aaaaaa", "the caller pads", PATH, 5)


def test_a_mutant_that_two_operators_give_is_ignored_under_either_name() -> None:
    text = with_end(5, COMMENT)
    assert ignored(text, at(5, "dropped-where", also=("drop-load-mask",)))


def test_the_line_that_a_report_prints_ignores_the_mutant_and_keeps_its_id() -> None:
    text = KERNELS.read_text()
    planted = planted_in(text)
    assert len(planted) > 5
    for one in planted:
        lines = text.splitlines()
        lines[one.line - 1] += "  " + ignore_comment(one.id).replace("REASON", "as it must")
        commented = "\n".join(lines) + "\n"
        again = planted_in(commented)
        assert [m.id for m in again] == [m.id for m in planted]
        comments = find_comments(str(KERNELS), commented)
        found = ignored_mutants(again, {str(KERNELS): commented}, comments, ())
        assert one.id in {i.mutant for i in found}
        assert {i.reason for i in found} == {"as it must"}


def planted_in(text: str) -> list[Mutant]:
    (kernel,), _ = find_kernels("kernels_softmax", str(KERNELS), text)
    return plant("softmax", kernel, text, all_operators())


def test_a_variant_is_ignored_alone() -> None:
    text = with_end(5, "# gatecert: ignore[wrong-pad-value.undefined] never used")
    one, other = (
        msgspec.structs.replace(at(5, "wrong-pad-value"), variant=variant)
        for variant in ("undefined", "one")
    )
    assert ignored(text, one)
    assert not ignored(text, other)
    assert ignore_comment("s/kernel/wrong-pad-value.undefined/1-aaaaaa") == (
        "# gatecert: ignore[wrong-pad-value.undefined] REASON"
    )
    rules = find_comments(PATH, text)
    names = [*NAMES, "wrong-pad-value"]
    assert idle_rules([one], {PATH: text}, rules, (), names, whole=True) == []


FILE = """
[[ignore]]
mutant = "s/kernel/drop-load-mask/1-aaaaaa"
reason = "the caller pads"

[[ignore]]
mutant = "s/*/wrong-constant*"
reason = "a tuned number"
"""


def test_entries_of_the_file_name_ids_and_globs() -> None:
    entries = parse_ignore_file("i.toml", FILE)
    assert [(e.line, e.reason) for e in entries] == [(2, "the caller pads"), (6, "a tuned number")]
    mutants = (at(5), at(6, "wrong-constant.swap"), at(7, "dropped-where"))
    found = ignored_mutants(mutants, {PATH: SOURCE}, (), entries)
    assert [(i.mutant, i.line) for i in found] == [(mutants[0].id, 2), (mutants[1].id, 6)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[ignore]]\nmutant = "a"\n', "i.toml:1: .*reason"),
        (FILE + '[[ignore]]\nmutant = "a"\nreason = " "\n', "i.toml:9: .*reason"),
        ('[[ignore]]\nreason = "a"\n', "i.toml:1: .*mutant"),
        ('[[ignore]]\nmutants = "a"\nreason = "b"\n', "unknown field `mutants`"),
        ("[[ignore]\n", "not valid TOML"),
    ],
)
def test_an_entry_without_a_reason_or_with_another_key_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_ignore_file("i.toml", text)


def idle(text: str, entries: tuple[Entry, ...] = (), *, whole: bool = True) -> list[str]:
    comments = find_comments(PATH, text)
    return idle_rules([at(5)], {PATH: text}, comments, entries, NAMES, whole=whole)


def test_an_unknown_operator_is_named_with_the_nearest_one() -> None:
    (line,) = idle(with_end(5, "# gatecert: ignore[drop-laod-mask] pads"), whole=False)
    assert line.startswith("kernels.py:5: ") and "did you mean 'drop-load-mask'" in line


def test_a_rule_that_covers_nothing_is_named_where_all_was_planted() -> None:
    text = with_end(11, COMMENT)
    entry = Entry("i.toml", 3, "s/kernel/drop-load-mask/1-aaaaab", "pads")
    comment, missing = idle(text, (entry,))
    assert "covers no mutant" in comment
    assert "did you mean 's/kernel/drop-load-mask/1-aaaaaa'" in missing
    assert idle(text, (entry,), whole=False) == []


def test_a_rule_that_does_its_work_is_not_named() -> None:
    assert idle(with_end(5, COMMENT), (Entry("i.toml", 1, "s/*", "all"),)) == []
