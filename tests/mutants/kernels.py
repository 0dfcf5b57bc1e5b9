"""Texts and operators that several tests plant."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.mutants.discover import find_kernels
from gatecert.mutants.plant import plant
from gatecert.mutants.records import Kernel, Mutant
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.records import Edit, ObservableBy, Operator, Reveal, Site

SCALE = """\
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    y = x * 2.0 + x * 2.0
    tl.store(y_ptr + cols, y / tl.sum(x, axis=0), mask=cols < n)
"""


def replacer(name: str, old: str, *new: str) -> Operator:
    """An operator that replaces each occurrence of a text in a kernel, one variant per new text."""

    def find(kernel: KernelSyntax) -> Iterator[Site]:
        module = kernel.module
        start, end = module.span(kernel.function)
        at = module.text.find(old, start, end)
        while at >= 0:
            line = module.text.count("\n", 0, at) + 1
            for number, text in enumerate(new):
                yield Site(
                    edits=(Edit(at, at + len(old), text),),
                    line=line,
                    detail=f"{old} becomes {text}",
                    observable_by=(ObservableBy.VALUES,),
                    reveal=(Reveal.ANY,),
                    variant=f"v{number}" if len(new) > 1 else "",
                )
            at = module.text.find(old, at + 1, end)

    return Operator(name, "test", "replaces text", "textbook", find, (), ())


def only_kernel(text: str, module: str = "acme.scale", path: str = "/acme/scale.py") -> Kernel:
    """The one kernel of a text."""
    [kernel] = find_kernels(module, path, text)[0]
    return kernel


def plant_all(text: str, *operators: Operator) -> list[Mutant]:
    """Mutants of the text's one kernel."""
    return plant("subject", only_kernel(text), text, operators)
