"""Benign rewrites: correct by construction, and other bits than the original's.

A gate that rejects one of them is wrong. Every rule reads syntax and dataflow, never names, and
leaves alone whatever it cannot show to be safe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from gatecert.errors import InternalError
from gatecert.mutants import benign_arithmetic as arithmetic
from gatecert.mutants.benign_blocks import block_rewrites
from gatecert.mutants.benign_loops import loops_backwards
from gatecert.mutants.discover import kernel_syntax
from gatecert.mutants.plant import apply_edits, unified_diff
from gatecert.mutants.records import Candidate, CandidateKind, Kernel
from gatecert.operators.facts.dataflow import Dataflow, analyse
from gatecert.operators.facts.kernel import ModuleSyntax, parse_module
from gatecert.operators.records import Edit

_Named = tuple[str, str, Sequence[Edit]]
"""Name, sentence and edits of a rewrite."""


def benign_rewrites(
    subject: str, kernels: Sequence[Kernel], texts: Mapping[str, str]
) -> list[Candidate]:
    """Correct rewrites of the subject's kernels, each a control of its own.

    Block sizes halved and doubled, loops run backwards, sums paired otherwise, exp by exp2 or the
    reverse, operands swapped. `texts` maps the kernels' paths to their original texts.
    """
    found: list[Candidate] = []
    for path in dict.fromkeys(kernel.path for kernel in kernels):
        module = parse_module(texts[path])
        here = [kernel for kernel in kernels if kernel.path == path]
        for name, detail, edits in _rewrites(module, here):
            text = apply_edits(module.text, edits)
            _must_parse(text, name)
            found.append(
                Candidate(
                    id=f"{subject}/benign/{name}",
                    kind=CandidateKind.BENIGN,
                    subject=subject,
                    files={path: text},
                    detail=detail,
                    diff=unified_diff(here[0].module, module.text, text),
                )
            )
    return found


def _must_parse(text: str, name: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise InternalError(f"benign rewrite {name} does not parse: {error.msg}") from error


def _rewrites(module: ModuleSyntax, kernels: Sequence[Kernel]) -> Iterator[_Named]:
    for kernel in kernels:
        flow = analyse(kernel_syntax(module, kernel.qualname))
        for name, detail, edits in _kernel_rewrites(flow):
            if edits:
                yield f"{kernel.qualname}/{name}", detail, edits
    yield from block_rewrites(module, kernels)


def _kernel_rewrites(flow: Dataflow) -> Iterator[_Named]:
    yield "exp2", "exp(x) is exp2(x log2(e))", arithmetic.exp_by_exp2(flow)
    yield "exp", "exp2(x) is exp(x log(2))", arithmetic.exp2_by_exp(flow)
    yield "swapped-operands", "a + b is b + a, a * b is b * a", arithmetic.swapped_operands(flow)
    yield "regrouped", "a * b * c is a * (b * c)", arithmetic.regrouped_products(flow)
    yield "sums-in-pairs", "sums add neighbours first", arithmetic.sums_in_pairs(flow)
    yield "loops-backwards", "loops visit their tiles last to first", loops_backwards(flow)
