"""The mask operators on kernels whose authors have not seen them."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import libcst as cst
import pytest

from gatecert.operators.facts.kernel import KernelSyntax, ModuleSyntax, parse_module
from gatecert.operators.records import Edit
from gatecert.operators.registry import get_operator

NAMES = ("drop-load-mask", "drop-store-mask", "wrong-pad-value", "mask-bound-off-by-one")
MODULES = ("softmax", "rms_norm", "layer_norm", "swiglu", "geglu", "cross_entropy")

SPEC = importlib.util.find_spec("liger_kernel")
FOLDER = Path(SPEC.origin).parent / "ops" if SPEC is not None and SPEC.origin else None
pytestmark = pytest.mark.skipif(FOLDER is None, reason="needs the extra [liger]")


def kernels(module: ModuleSyntax) -> list[KernelSyntax]:
    return [
        KernelSyntax(module, node, node.name.value)
        for node in module.tree.body
        if isinstance(node, cst.FunctionDef)
        and any("triton.jit" in module.source(d.decorator) for d in node.decorators)
    ]


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


@pytest.mark.parametrize("name", MODULES)
def test_every_mutant_is_new_and_parses(name: str) -> None:
    assert FOLDER is not None
    module = parse_module((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    planted: Counter[str] = Counter()
    texts = [module.text]
    for kernel in kernels(module):
        for operator in NAMES:
            for site in get_operator(operator).find(kernel):
                planted[operator] += 1
                texts.append(edited(module.text, site.edits))
    assert len(set(texts)) == len(texts)
    for text in texts:
        compile(text, name, "exec")
    assert planted["drop-load-mask"] >= 1
    assert planted["drop-store-mask"] >= 1
    assert planted["mask-bound-off-by-one"] >= 2
