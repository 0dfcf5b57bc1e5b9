"""A launch is told by its syntax and the module's imports, in either kind of tree."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst
import pytest

from gatecert.mutants.discover import kernel_syntax
from gatecert.operators.facts.contiguity import launches
from gatecert.operators.facts.kernel import parse_module
from gatecert.operators.facts.launched import launched
from gatecert.operators.facts.scalars import float_parameters

IMPORTED = {"torch": "torch", "lib": "torch.library", "wt": "torch.library.wrap_triton"}
KERNEL = """\
@triton.jit
def scale(x_ptr, y_ptr, factor, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * factor)
"""
LAUNCHER = """\
import triton
import triton.language as tl
import torch
from torch.library import wrap_triton as wt


def launch(x, factor: float):
    y = torch.empty(64)
    {call}[(1,)](x, y, factor, BLOCK=64)
    return y


"""


def kernel_of(callee: str, imported: Mapping[str, str] = IMPORTED) -> str | None:
    """What a call of `callee` launches; both kinds of tree say the same."""
    by_ast = launched(ast.parse(callee, mode="eval").body, imported)
    by_cst = launched(cst.parse_expression(callee), imported)
    assert by_ast == by_cst
    return by_ast


@pytest.mark.parametrize(
    "callee",
    [
        "scale[grid]",
        "scale[1, n]",
        "wt(scale)[grid]",
        "torch.library.wrap_triton(scale)[lambda meta: (1,)]",
        "lib.wrap_triton(scale)[1, n]",
        "(wt(\n    scale\n))[grid]",
    ],
)
def test_a_kernel_is_launched_by_itself_or_wrapped(callee: str) -> None:
    assert kernel_of(callee) == "scale"


def test_a_wrapped_kernel_may_be_another_module_s() -> None:
    assert kernel_of("wt(acme.kernels.scale)[grid]") == "acme.kernels.scale"


@pytest.mark.parametrize(
    "callee",
    [
        "wrap_triton(scale)",
        "torch.wrap_triton(scale)",
        "torch.library.wrap_triton(scale, 1)",
        "wt(kernel=scale)",
        "wt(*scale)",
        "wt()",
        "wt(kernels[0])",
        "f(wt(scale))",
    ],
)
def test_what_any_other_call_gives_is_not_known(callee: str) -> None:
    assert kernel_of(f"{callee}[grid]") is None


def test_a_name_that_only_reads_like_it_wraps_nothing() -> None:
    imported = {"wrap_triton": "acme.wrap_triton", "torch": "acme.torch"}
    for callee in ("wrap_triton(scale)", "torch.library.wrap_triton(scale)"):
        assert kernel_of(f"{callee}[grid]", imported) is None


@pytest.mark.parametrize("callee", ["scale", "wt(scale)", "scale.run", "torch.library.wrap_triton"])
def test_what_has_no_grid_launches_nothing(callee: str) -> None:
    assert kernel_of(callee) is None


@pytest.mark.parametrize("call", ["scale", "wt(scale)", "torch.library.wrap_triton(scale)"])
def test_a_kernel_s_facts_count_its_wrapped_launches(call: str) -> None:
    kernel = kernel_syntax(parse_module(LAUNCHER.format(call=call) + KERNEL), "scale")
    assert [launcher.qualname for launcher, _ in launches(kernel)] == ["launch"]
    assert "factor" in float_parameters(kernel)


def test_a_kernel_s_facts_count_no_launch_that_only_reads_like_one() -> None:
    text = LAUNCHER.format(call="wrap(scale)") + KERNEL
    kernel = kernel_syntax(parse_module(text), "scale")
    assert not launches(kernel)
    assert not float_parameters(kernel)
