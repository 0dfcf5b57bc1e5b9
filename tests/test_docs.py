"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
import torch

import gatecert
from benchmarks.readme_block import README, report_of_corpus, with_block
from gatecert.calibration.models import MODELS
from gatecert.campaign.records import Status
from gatecert.certificate.records import Certificate
from gatecert.cli.app import COMMANDS, group
from gatecert.diagnosis.records import Cause
from gatecert.errors import INTERRUPTED, TERMINATED, ExitCode
from gatecert.gates.registry import built_in_names
from gatecert.operators.registry import all_operators
from gatecert.operators.scaled_result import ERRORS, variant_of
from gatecert.oracle.comparators import COMPARATORS
from gatecert.oracle.index_tensors import INDEX_RULES
from gatecert.oracle.metamorphic import RELATIONS
from gatecert.oracle.operations import operations
from gatecert.oracle.schema import Tensor
from gatecert.oracle.strategies import STRATEGIES
from gatecert.oracle.values import EXACT_RECIPES
from gatecert.reports.catalogue import explain_operator, render_catalogue

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("examples/*/*.md")])


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_operator_catalogue_is_fresh() -> None:
    assert page("docs/operators.md") == render_catalogue(all_operators()), "run `make docs`"


def test_an_explanation_shows_every_example() -> None:
    operator = all_operators()[0]
    text = explain_operator(operator)
    assert text.count("Plants in") == len(operator.applies)
    assert text.count("Leaves alone") == len(operator.does_not_apply)
    diffs = sum(len(example.mutants) for example in operator.applies)
    assert text.count("\n\n    @@") == diffs > 0


def test_every_exit_code_is_documented() -> None:
    documented = re.findall(r"^\| (\d+) \|", page("docs/exit-codes.md"), re.MULTILINE)
    assert [int(code) for code in documented] == [*sorted(ExitCode), INTERRUPTED, TERMINATED]


def test_every_key_of_the_certificate_is_documented() -> None:
    text = page("docs/certificate.md")
    for key in Certificate.__struct_fields__:
        assert f"`{key}`" in text, key
    for member in (*Status, *Cause):
        assert f"`{member.value}`" in text, member


@pytest.mark.parametrize("name", built_in_names())
def test_every_built_in_gate_is_documented(name: str) -> None:
    assert f"`{name}`" in page("docs/gates.md")


def test_every_comparator_and_every_key_of_it_is_documented() -> None:
    text = page("docs/calibrate.md")
    for kind in COMPARATORS:
        (line,) = (line for line in text.splitlines() if line.startswith(f"| `{kind.__name__}`"))
        for key in set(kind.__struct_fields__) - {"round_reference"}:
            assert f"`{key}`" in line, (kind, key)
    for model in MODELS:
        assert f"| `{model}` |" in text, model


@pytest.mark.parametrize("rule", INDEX_RULES)
def test_every_index_rule_is_documented_as_it_is_written(rule: str) -> None:
    assert f"| `Tensor.{rule}(" in page("docs/operations.md")
    assert callable(getattr(Tensor, rule))


def test_every_strategy_is_documented_as_it_says_of_itself() -> None:
    said = [f"| `{one.name}` | {one.summary} |" for one in STRATEGIES.values()]
    table = page("docs/oracle.md").partition("| strategy | tries |\n|---|---|\n")[2]
    assert table.partition("\n\n")[0].splitlines() == said


def test_every_operation_with_exact_outputs_and_every_relation_is_documented() -> None:
    text = page("docs/oracle.md")
    exact = text.partition("Exact among the built-in operations")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", exact))
    assert named == {one.name for one in operations() if one.exact is not None}
    for recipe in EXACT_RECIPES:
        assert f"| `{recipe}` |" in text
    for relation in RELATIONS:
        assert f"| `{relation}` |" in text


def test_detection_limits_are_documented_with_the_errors_that_are_planted() -> None:
    limits = page("docs/oracle.md").partition("## Detection limits")[2]
    factors = [variant_of(error)[1:] for error in ERRORS]
    assert f"a factor of {', '.join(factors[:-1])} and {factors[-1]}," in limits


def test_the_readme_shows_what_is_printed_of_the_committed_run() -> None:
    text = README.read_text(encoding="utf-8")
    assert text == with_block(text, report_of_corpus()), "run `make docs`"


def test_the_readme_names_every_command() -> None:
    text = page("README.md")
    for name in COMMANDS:
        assert re.search(rf"`(gatecert )?{name}\b", text), name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_or_is_in_the_documentation(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    leaves = command.commands.values() if isinstance(command, click.Group) else [command]
    text = "\n".join(page(path.relative_to(ROOT)) for path in PAGES)
    for leaf in leaves:
        for option in leaf.params:
            known = not isinstance(option, click.Option) or option.help
            assert known or option.opts[-1] in text, (leaf.name, option.opts)


def test_every_page_is_within_reach_of_the_readme() -> None:
    reached, pending = set(), [ROOT / "README.md"]
    while pending:
        path = pending.pop()
        if path not in reached and path.suffix == ".md":
            reached.add(path)
            pending += [(path.parent / one).resolve() for one in links_of(path)]
    assert {path for path in PAGES if path.parent == ROOT / "docs"} <= reached
    direct = {(ROOT / target).resolve() for target in links_of(ROOT / "README.md")}
    assert set((ROOT / "docs").glob("*.md")) <= direct


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(path: Path) -> None:
    for target in links_of(path):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_a_section_lead_to_one(path: Path) -> None:
    for target, section in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", prose_of(path)):
        text = (path.parent / target if target else path).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        there = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
        assert section in there, f"{target}#{section}"


def prose_of(path: Path) -> str:
    """The page without code."""
    return re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def links_of(path: Path) -> list[str]:
    """Files of this repository that a page links to."""
    return re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose_of(path))


def python_blocks() -> list[tuple[str, int, str]]:
    """Page, number and text of every Python block of the documentation."""
    return [
        (str(path.relative_to(ROOT)), number, block)
        for path in PAGES
        for number, block in enumerate(
            re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
        )
    ]


@pytest.mark.parametrize(("name", "number", "block"), python_blocks())
def test_python_in_the_documentation_compiles_and_operations_can_be_declared(
    name: str, number: int, block: str
) -> None:
    compiled = compile(block, f"{name}#{number}", "exec")
    if "@operation" not in block and "grad_of(" not in block:
        return
    known = {one: getattr(gatecert, one) for one in gatecert.__all__}
    exec(compiled, {**known, "torch": torch})
