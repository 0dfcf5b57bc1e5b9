"""Launchers of a subject are found where it launches, and mutated like kernels."""

from __future__ import annotations

import pytest

from gatecert.errors import InternalError
from gatecert.mutants.discover import find_kernels, find_launchers
from gatecert.mutants.launchers import Sources, launchers_at
from gatecert.mutants.plant import overlay_of, plant, plant_in_launcher
from gatecert.mutants.records import Mutant
from gatecert.operators.facts.launcher import LauncherSyntax
from gatecert.operators.records import Edit, Operator, Site, no_sites
from gatecert.operators.registry import get_operator

KERNELS = """\
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2.0, mask=offs < n)
"""
OPS = """\
import torch
import triton

from .kernels import scale as scale_kernel


def double(x):
    y = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 64),)
    scale_kernel[grid](x, y, x.numel(), BLOCK=64)
    return y


class Double:
    @staticmethod
    def forward(x):
        def run():
            return double(x)

        scale_kernel[(triton.cdiv(x.numel(), 32),)](x, x, x.numel(), BLOCK=32)
        return run()


def through(kernel, x):
    kernel[(1,)](x, x, 1, BLOCK=1)
"""
GRID = get_operator("grid-rounded-down")


def sources(ops: str = OPS) -> Sources:
    texts = {"/acme/kernels.py": KERNELS, "/acme/ops.py": ops}
    paths = {"acme.kernels": "/acme/kernels.py", "acme.ops": "/acme/ops.py"}
    kernels = find_kernels("acme.kernels", "/acme/kernels.py", KERNELS)[0]
    return Sources(paths, texts, {kernel.name: kernel for kernel in kernels})


def line_of(text: str, ops: str = OPS) -> tuple[str, int]:
    return "/acme/ops.py", ops[: ops.index(text)].count("\n") + 1


def mutants(ops: str, *operators: Operator) -> list[Mutant]:
    """Mutants of the launcher `double` of a text."""
    [launcher] = launchers_at(
        [line_of("scale_kernel[grid]", ops)],
        sources(ops),
        {"acme.kernels:scale"},
        "acme.ops:double",
    )
    return plant_in_launcher("subject", launcher, sources(ops), operators)


@pytest.mark.parametrize(
    ("launched_at", "expected"),
    [
        ("scale_kernel[grid]", ["double"]),
        ("scale_kernel[(triton", ["Double.forward"]),
        ("kernel[(1,)]", []),
        ("import torch", []),
    ],
)
def test_a_launcher_is_where_a_launch_was_seen_and_names_the_kernel(
    launched_at: str, expected: list[str]
) -> None:
    at = line_of(launched_at)
    found = launchers_at([at], sources(), {"acme.kernels:scale"}, "acme.ops:double")
    assert [launcher.qualname for launcher in found] == expected
    assert all(launcher.launches == ("acme.kernels:scale",) for launcher in found)
    assert launchers_at([at], sources(), {"acme.kernels:other"}, "acme.ops:double") == []


def test_two_launchers_of_one_kernel_are_not_mixed() -> None:
    places = [line_of("scale_kernel[grid]"), line_of("scale_kernel[(triton")]
    both = launchers_at(places, sources(), {"acme.kernels:scale"}, "acme.ops:double")
    assert [launcher.qualname for launcher in both] == ["double", "Double.forward"]
    [one] = launchers_at(places[:1], sources(), {"acme.kernels:scale"}, "acme.ops:double")
    assert {m.kernel for m in plant_in_launcher("s", one, sources(), (GRID,))} == {"double"}


def test_a_mutant_names_the_launcher_and_what_it_launches() -> None:
    [mutant] = mutants(OPS, GRID)
    assert mutant.id.rpartition("/")[0] == "subject/double/grid-rounded-down"
    assert (mutant.module, mutant.kernel) == ("acme.ops", "double")
    assert mutant.launches == ("acme.kernels:scale",)
    assert mutant.in_launcher and mutant.unit == "acme.kernels:scale"
    assert mutant.line == line_of("triton.cdiv")[1]
    changed = OPS.replace("triton.cdiv(x.numel(), 64)", "x.numel() // 64")
    assert overlay_of(mutant, {"/acme/ops.py": OPS}) == {"/acme/ops.py": changed}


def test_the_kernel_s_syntax_is_found_in_the_module_that_defines_it() -> None:
    [launcher] = launchers_at(
        [line_of("scale_kernel[grid]")], sources(), {"acme.kernels:scale"}, "acme.ops:double"
    )
    seen: list[LauncherSyntax] = []

    def find(syntax: LauncherSyntax) -> list[Site]:
        seen.append(syntax)
        return []

    looks = Operator("looks", "c", "s", "textbook", no_sites, (), (), find_in_launcher=find)
    plant_in_launcher("s", launcher, sources(), (looks,))
    (launch,) = seen[0].launches
    assert launch.syntax is not None
    assert list(launch.arguments) == ["x_ptr", "y_ptr", "n", "BLOCK"]


def test_ids_do_not_depend_on_what_surrounds_the_launcher() -> None:
    moved = OPS.replace("def double(x):", "X = 1\n\n\ndef double(x):\n    # grids").replace(
        "triton.cdiv(x.numel(), 64)", "triton.cdiv(\n        x.numel(), 64\n    )"
    )
    assert [m.id for m in mutants(moved, GRID)] == [m.id for m in mutants(OPS, GRID)]


def test_operators_of_kernels_leave_launchers_alone_and_the_reverse() -> None:
    masks = get_operator("drop-load-mask")
    assert mutants(OPS, masks) == []
    [kernel] = sources().kernels.values()
    assert [m.operator for m in plant("s", kernel, KERNELS, (masks, GRID))] == ["drop-load-mask"]


def test_an_edit_outside_the_launcher_is_our_error() -> None:
    def find(launcher: LauncherSyntax) -> list[Site]:
        return [Site((Edit(0, 6, "print"),), 1, "detail", (), ())]

    bad = Operator("bad", "c", "s", "textbook", no_sites, (), (), find_in_launcher=find)
    with pytest.raises(InternalError, match="operator bad at double, line 1: an edit leaves"):
        mutants(OPS, bad)


def test_launchers_of_a_text_are_all_found_by_name() -> None:
    names = [launcher.qualname for launcher in find_launchers("acme.ops", "/acme/ops.py", OPS)]
    assert names == ["double", "Double.forward"]


@pytest.mark.parametrize(
    ("module", "path", "entry", "expected"),
    [
        ("acme.ops", "/acme/ops.py", "other:softmax", 1),
        ("adapters", "/adapters.py", "adapters:softmax", 1),
        ("checks", "/checks.py", "acme.ops:double", 0),
        ("acme.test_ops", "/acme/test_ops.py", "acme.ops:double", 0),
    ],
)
def test_what_a_gate_launches_by_itself_is_not_mutated(
    module: str, path: str, entry: str, expected: int
) -> None:
    known = sources()
    text = OPS.replace("from .kernels", "from acme.kernels")
    paths = {**known.paths, module: path}
    texts = {**known.texts, path: text}
    line = line_of("scale_kernel[grid]")[1]
    found = launchers_at(
        [(path, line)], Sources(paths, texts, known.kernels), {"acme.kernels:scale"}, entry
    )
    assert len(found) == expected
