"""Kernels are found however they are declared, and what is passed over is named."""

from __future__ import annotations

import pytest

from gatecert.errors import InternalError
from gatecert.mutants.discover import (
    body_start,
    find_kernels,
    find_launchers,
    kernel_syntax,
    launched_names,
    link_callees,
)
from gatecert.operators.facts.kernel import parse_module

_HEADER = "import triton\nimport triton.language as tl\n"


def _names(text: str, module: str = "acme.kernels", path: str = "kernels.py") -> list[str]:
    return [kernel.qualname for kernel in find_kernels(module, path, text)[0]]


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("import triton", "triton.jit"),
        ("import triton as tr", "tr.jit"),
        ("from triton import jit", "jit"),
        ("from triton import jit as kernel", "kernel"),
        ("from triton.runtime.jit import jit", "jit"),
        ("import triton.runtime.jit", "triton.runtime.jit.jit"),
        ("import triton\njit = triton.jit", "jit"),
        ("import triton", "triton.jit(do_not_specialize=['n'])"),
        ("import triton", "triton.heuristics({})\n@triton.jit"),
        (
            "import triton",
            "triton.autotune(configs=[], key=[])\n@triton.heuristics({})\n@triton.jit",
        ),
        ("import triton\nfrom lib import entry", "entry()\n@triton.jit"),
    ],
)
def test_every_spelling_of_the_decorator_is_seen(imports: str, decorator: str) -> None:
    assert _names(f"{imports}\n\n@{decorator}\ndef k(x):\n    pass\n") == ["k"]


def test_nested_kernels_have_pythons_qualified_names() -> None:
    text = f"""{_HEADER}
if True:
    @triton.jit
    def in_if(x): pass
try:
    @triton.jit
    def in_try(x): pass
except ImportError:
    pass
class K:
    @staticmethod
    @triton.jit
    def in_class(x): pass
def make():
    @triton.jit
    def in_function(x): pass
    return in_function
"""
    assert _names(text) == ["in_if", "in_try", "K.in_class", "make.<locals>.in_function"]


def test_jit_called_as_a_function_is_seen_and_its_alias_is_a_callee() -> None:
    text = f"""{_HEADER}
def _impl(x): return x
def _tuned(x): return helper(x)
helper = triton.jit(_impl)
kernel = triton.autotune([], key=[])(triton.jit(_tuned))
"""
    kernels, skips = find_kernels("acme", "acme.py", text)
    assert [(k.qualname, k.callees) for k in kernels] == [
        ("_impl", ()),
        ("_tuned", ("acme:_impl",)),
    ]
    assert not skips


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("import numba\n@numba.jit\ndef f(x): pass", "m:f", "decorated by numba.jit"),
        (
            "from triton.experimental import gluon\n@gluon.jit\ndef f(x): pass",
            "m:f",
            "a Gluon kernel",
        ),
        ("import triton\nf = triton.jit(make())", "m:f", "no function of this module"),
        ("def f(:", "m", "not Python"),
    ],
)
def test_what_is_no_kernel_is_skipped_with_a_reason(text: str, name: str, reason: str) -> None:
    kernels, skips = find_kernels("m", "m.py", text)
    assert kernels == []
    assert [skip.name for skip in skips] == [name]
    assert reason in skips[0].reason


def test_a_kernel_defined_twice_is_skipped_both_times() -> None:
    one = "    @triton.jit\n    def k(x): pass\n"
    kernels, skips = find_kernels("m", "m.py", f"{_HEADER}if A:\n{one}else:\n{one}")
    assert kernels == []
    assert [skip.line for skip in skips] == [5, 8]
    assert all("defined more than once" in skip.reason for skip in skips)


def test_plain_functions_are_neither_kernels_nor_skips() -> None:
    assert find_kernels("m", "m.py", "def f(x):\n    return x\n") == ([], [])


def test_callees_are_followed_within_and_across_modules() -> None:
    helpers = f"""{_HEADER}
@triton.jit
def inner(x): return x
@triton.jit
def square(x): return inner(x) * x
@triton.jit
def add(a, b): return a + b
"""
    kernels = f"""{_HEADER}
from . import helpers as h
from .helpers import add
from acme import square
@triton.jit
def _local(x): return square(h.inner(x))
@triton.jit
def k(x):
    y = _local(x)
    return tl.reduce(y, 0, add) + tl.reduce(y, 0, combine_fn=add) + tl.cdiv(x, 2)
"""
    found = [
        *find_kernels("acme.kernels", "acme/kernels.py", kernels)[0],
        *find_kernels("acme.helpers", "acme/helpers.py", helpers)[0],
    ]
    linked = {kernel.name: set(kernel.callees) for kernel in link_callees(found)}
    helper = "acme.helpers:"
    assert linked["acme.kernels:k"] == {
        "acme.kernels:_local", f"{helper}add", f"{helper}square", f"{helper}inner",
    }  # fmt: skip
    assert linked[f"{helper}square"] == {f"{helper}inner"}
    assert linked[f"{helper}inner"] == set()


def test_a_recursive_kernel_is_not_its_own_callee() -> None:
    text = f"{_HEADER}@triton.jit\ndef k(x): return k(x)\n"
    assert find_kernels("m", "m.py", text)[0][0].callees == ()


def test_launchers_name_the_kernels_they_launch() -> None:
    text = f"""{_HEADER}
from acme.other import far_kernel
@triton.jit
def k(x): pass
class F:
    @staticmethod
    def forward(x):
        k[(1,)](x)
        k[lambda meta: (1,)](x)
        far_kernel[(2,)](x)
def outer(x):
    def inner():
        k[(1,)](x)
    return rows[0](x)
"""
    launchers = find_launchers("m", "m.py", text)
    assert [(found.qualname, found.launches) for found in launchers] == [
        ("F.forward", ("m:k", "acme.other:far_kernel")),
        ("outer.<locals>.inner", ("m:k",)),
    ]


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import torch", "torch.library.wrap_triton(k)"),
        ("import torch.library as lib", "lib.wrap_triton(k)"),
        ("from torch import library", "library.wrap_triton(k)"),
        ("from torch.library import triton_op, wrap_triton", "wrap_triton(k)"),
        ("from torch.library import wrap_triton as wt", "wt(k)"),
        ("import torch\nwt = torch.library.wrap_triton", "wt(k)"),
        ("import torch\nwrapped = torch.library.wrap_triton(k)", "wrapped"),
    ],
)
def test_a_launch_of_a_wrapped_kernel_names_the_kernel(imports: str, call: str) -> None:
    text = f"""{_HEADER}
@triton.jit
def k(x): pass
{imports}
def launch(x):
    {call}[(1,)](x)
"""
    assert [found.launches for found in find_launchers("m", "m.py", text)] == [("m:k",)]
    assert list(launched_names("m", "m.py", text).values()) == ["m:k"]


def test_a_kernel_that_is_wrapped_may_be_imported() -> None:
    text = """
from torch.library import wrap_triton
from .other import far_kernel as far
def launch(x):
    wrap_triton(far)[(1,)](x)
"""
    (launcher,) = find_launchers("acme.ops", "acme/ops.py", text)
    assert launcher.launches == ("acme.other:far_kernel",)


def test_what_only_reads_like_wrapping_is_no_launch_of_the_kernel() -> None:
    text = f"""{_HEADER}
@triton.jit
def k(x): pass
def wrap_triton(kernel): return lookup(kernel)
wrapped = wrap_triton(k)
def launch(x):
    wrap_triton(k)[(1,)](x)
    wrapped[(1,)](x)
"""
    assert find_launchers("m", "m.py", text) == []
    assert launched_names("m", "m.py", text) == {}


def test_syntax_is_looked_up_by_qualified_name() -> None:
    text = "import triton\nfrom triton import language as L\n@triton.jit\ndef k(x):\n    pass\n"
    syntax = kernel_syntax(parse_module(text), "k")
    assert syntax.function.name.value == "k"
    assert syntax.language_names == {"L", "triton.language"}
    with pytest.raises(InternalError, match="no function 'gone'"):
        kernel_syntax(parse_module(text), "gone")


@pytest.mark.parametrize(
    "call",
    [
        "helper(x)",
        "scaled(x)",
        "tl.map_elementwise(helper, x)",
        "apply(x, helper)",
        "pick(x, WHERE=helper)",
    ],
)
def test_a_function_that_a_kernel_names_is_one_it_may_call(call: str) -> None:
    """Else a change of it is compared in the kernels only that call it by its own name."""
    text = f"""{_HEADER}
@triton.jit
def helper(x):
    return x * 2
scaled = helper
@triton.jit
def kernel(x):
    tl.store(x, {call})
"""
    kernels, _ = find_kernels("acme.kernels", "kernels.py", text)
    assert kernels[1].callees == ("acme.kernels:helper",)


def test_names_bound_in_a_circle_are_no_kernels() -> None:
    text = f"""{_HEADER}
a = b
b = a
@triton.jit
def kernel(x):
    a(x)
"""
    kernels, _ = find_kernels("acme.kernels", "kernels.py", text)
    assert link_callees(kernels)[0].callees == ()


def test_a_body_starts_after_decorators_and_parameters() -> None:
    text = "@jit\ndef f(\n    x: int,\n):\n    return x\n"
    start = body_start(text, "f")
    assert start is not None and text[start:] == "    return x\n"
    assert body_start(text, "g") is None
