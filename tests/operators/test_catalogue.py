"""Every operator against its own examples, and the catalogue as a whole."""

from __future__ import annotations

import subprocess
import sys

import libcst as cst
import pytest

from gatecert.errors import UsageError
from gatecert.operators import scaled_result
from gatecert.operators.facts.kernel import KernelSyntax, parse_module
from gatecert.operators.records import Edit, Example, Operator, Site, Target
from gatecert.operators.registry import (
    all_operators,
    bug_classes,
    catalogue_version,
    get_operator,
)
from tests.operators.launchers import sites_in_launcher

HEADER = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
OF_LIMITS = scaled_result.OPERATOR
"""In no catalogue: `gatecert limits` alone plants it."""
OPERATORS = [pytest.param(operator, id=operator.name) for operator in (*all_operators(), OF_LIMITS)]


def kernel_syntax(source: str) -> KernelSyntax:
    """The last function of a text, as a kernel of a module that imports Triton."""
    module = parse_module(HEADER + source)
    functions = [node for node in module.tree.body if isinstance(node, cst.FunctionDef)]
    return KernelSyntax(module, functions[-1], functions[-1].name.value)


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with a site's edits made."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def planted(operator: Operator, source: str) -> list[tuple[Site, str]]:
    """Every site of an operator in a kernel or launcher, with the mutated text."""
    if operator.find_in_launcher is None:
        found = tuple(operator.find(kernel_syntax(source)))
    else:
        found = sites_in_launcher(operator, HEADER + source)
    return [(site, edited(HEADER + source, site.edits).removeprefix(HEADER)) for site in found]


def texts(operator: Operator, source: str) -> list[str]:
    return [text for _, text in planted(operator, source)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_plants_exactly_its_examples_in_order(operator: Operator) -> None:
    for example in operator.applies:
        assert texts(operator, example.source) == list(example.mutants)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_plants_nothing_where_it_does_not_apply(operator: Operator) -> None:
    for source in operator.does_not_apply:
        assert texts(operator, source) == []


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_example_mutant_is_new_and_parses(operator: Operator) -> None:
    for example in operator.applies:
        every = [example.source, *example.mutants]
        assert len(set(every)) == len(every)
        for text in every:
            cst.parse_module(HEADER + text)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_shows_two_kernels_of_each_sort(operator: Operator) -> None:
    assert len(operator.applies) >= 2
    assert all(example.mutants for example in operator.applies)
    assert len(operator.does_not_apply) >= 2


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_site_says_what_it_plants_and_where(operator: Operator) -> None:
    for example in operator.applies:
        lines = (HEADER + example.source).splitlines()
        for site, _ in planted(operator, example.source):
            assert site.detail
            assert HEADER.count("\n") < site.line <= len(lines)
            # What no run can show, no input reveals.
            assert bool(site.reveal) == bool(site.observable_by)


@pytest.mark.parametrize("operator", OPERATORS)
def test_names_decide_nothing(operator: Operator) -> None:
    for example in operator.applies:
        source, *mutants = (_renamed(text, example.source) for text in _all(example))
        assert texts(operator, source) == mutants


@pytest.mark.parametrize("operator", OPERATORS)
def test_another_alias_of_the_language_changes_nothing(operator: Operator) -> None:
    for example in operator.applies:
        source, *mutants = (text.replace("tl.", "language.") for text in _all(example))
        if operator.target is Target.LAUNCHER:
            header = HEADER.replace("as tl", "as language")
            found = [
                edited(header + source, site.edits)
                for site in sites_in_launcher(operator, header + source)
            ]
            assert found == [header + mutant for mutant in mutants]
            continue
        kernel = kernel_syntax("import triton.language as language\n\n\n" + source)
        aliased = KernelSyntax(
            kernel.module, kernel.function, kernel.qualname, frozenset({"language"})
        )
        found = [edited(kernel.module.text, site.edits) for site in operator.find(aliased)]
        assert [text[text.index("@triton.jit") :] for text in found] == [
            text[text.index("@triton.jit") :] for text in mutants
        ]


def _all(example: Example) -> tuple[str, ...]:
    return (example.source, *example.mutants)


def _renamed(text: str, original: str) -> str:
    """The text with other names for all that `original` defines: `v0`, `v1`, ..."""
    names = {name: f"v{i}" for i, name in enumerate(sorted(_defined(original)))}
    module = parse_module(text)
    edits = []
    for node, parent in module.parents.items():
        if not isinstance(node, cst.Name) or node.value not in names:
            continue
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            # A launch names the kernel's parameters; other keywords belong to libraries.
            call = module.parents[parent]
            if not (isinstance(call, cst.Call) and isinstance(call.func, cst.Subscript)):
                continue
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            continue
        start, end = module.inner_span(node)
        edits.append(Edit(start, end, names[node.value]))
    return edited(text, tuple(edits))


def _defined(text: str) -> set[str]:
    """Parameters, assigned names and loop variables of the functions of a text."""
    module = parse_module(text)
    found: set[str] = set()
    for node, parent in module.parents.items():
        target = isinstance(parent, cst.AssignTarget | cst.AugAssign | cst.For | cst.Param)
        if isinstance(node, cst.Name) and target:
            place = getattr(parent, "name", None) or getattr(parent, "target", None)
            if place is node:
                found.add(node.value)
    return found


def test_names_of_operators_are_unique_and_kebab_case() -> None:
    names = [operator.name for operator in all_operators()]
    assert len(set(names)) == len(names) == 28
    assert all(name == name.lower() and " " not in name and "_" not in name for name in names)


def test_rungs_of_the_detection_limit_are_in_no_catalogue_and_count_in_no_rate() -> None:
    assert OF_LIMITS not in all_operators()
    assert OF_LIMITS.bug_class not in bug_classes()
    rungs = [site for one in OF_LIMITS.applies for site, _ in planted(OF_LIMITS, one.source)]
    assert not any(site.scored for site in rungs)
    variants = [scaled_result.variant_of(error) for error in scaled_result.ERRORS]
    assert variants == ["x1.00001", "x1.0001", "x1.001", "x1.01", "x1.1"]
    assert {site.variant for site in rungs} == set(variants)


def test_every_operator_names_its_class_and_its_evidence() -> None:
    assert bug_classes() == tuple(dict.fromkeys(o.bug_class for o in all_operators()))
    assert all(operator.evidence and operator.summary for operator in all_operators())


def test_an_operator_is_found_by_its_name() -> None:
    for operator in all_operators():
        assert get_operator(operator.name) is operator


def test_an_unknown_operator_is_a_usage_error_that_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="drop-load-mask"):
        get_operator("drop-load-msk")


def test_the_catalogue_version_is_twelve_hex_digits_and_stable() -> None:
    version = catalogue_version()
    assert version == catalogue_version()
    assert len(version) == 12
    int(version, 16)


def test_the_catalogue_version_follows_the_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    before = catalogue_version()
    monkeypatch.setattr("gatecert.operators.registry._OPERATORS", all_operators()[1:])
    assert catalogue_version() != before


def test_operators_load_neither_torch_nor_triton() -> None:
    code = (
        "import sys, gatecert.operators.registry as r; r.all_operators();"
        "print(sorted({'torch', 'triton', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
