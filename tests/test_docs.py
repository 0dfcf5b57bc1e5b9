"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gatecert.calibration.models import MODELS
from gatecert.campaign.records import Status
from gatecert.certificate.records import Certificate, SurvivalReason
from gatecert.cli.app import COMMANDS
from gatecert.errors import INTERRUPTED, TERMINATED, ExitCode
from gatecert.gates.registry import built_in_names
from gatecert.operators.registry import all_operators
from gatecert.oracle.comparators import COMPARATORS
from gatecert.oracle.index_tensors import INDEX_RULES
from gatecert.oracle.schema import Tensor
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
    for member in (*Status, *SurvivalReason):
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


def test_the_readme_names_every_command() -> None:
    text = page("README.md")
    for name in COMMANDS:
        assert re.search(rf"`(gatecert )?{name}\b", text), name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (path.parent / target).exists(), target
