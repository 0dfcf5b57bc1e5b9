"""Claims about the lines that a mutant changes."""

from __future__ import annotations

from gatecert.diagnosis.lines import changed_lines

KERNEL = """import triton

SIZE = 4


@triton.jit
def kernel(x, SIZE: int = SIZE):
    y = (
        x
        + 1
    )
    if y > 0:
        y = 0
    return y
"""


def changed(before: str, after: str) -> tuple[list[int], list[int]]:
    here, there = changed_lines(KERNEL, KERNEL.replace(before, after))
    return sorted(here), sorted(there)


def test_a_line_inside_a_statement_stands_for_the_whole_statement() -> None:
    assert changed("+ 1", "+ 2") == ([8, 9, 10, 11], [8, 9, 10, 11])


def test_a_condition_stands_for_itself_and_not_for_what_it_guards() -> None:
    assert changed("if y > 0", "if y > 1") == ([12], [12])


def test_a_change_of_a_functions_head_is_reached_by_a_call_and_not_by_its_definition() -> None:
    _, there = changed("SIZE: int = SIZE", "SIZE: int = 2")
    assert 7 not in there
    assert {8, 12, 13, 14} <= set(there)


def test_a_line_that_is_left_out_is_one_of_the_originals_alone() -> None:
    assert changed("    if y > 0:\n        y = 0\n", "") == ([12, 13], [])


def test_a_constant_of_the_module_is_its_own_line() -> None:
    assert changed("SIZE = 4", "SIZE = 8") == ([3], [3])
