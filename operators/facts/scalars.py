"""What the launches in a kernel's module say about its scalar parameters."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.definitions import parameters_of
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.launched import launched


def float_parameters(kernel: KernelSyntax) -> frozenset[str]:
    """Parameters for which every launch in the module passes what is surely a float.

    That is a number with a point, a quotient, or a launcher's own parameter that is annotated
    `float` or has such a number as its default.
    """
    names = [param.name.value for param in parameters_of(kernel.function)]
    passed: dict[str, list[bool]] = {}
    for launch in _launches(kernel):
        floats = _float_names(kernel, launch)
        for position, arg in enumerate(launch.args):
            if arg.star:
                break  # how many it stands for is not known
            if arg.keyword is None and position < len(names):
                passed.setdefault(names[position], []).append(_is_float(arg.value, floats))
        for arg in launch.args:
            if arg.keyword is not None:
                passed.setdefault(arg.keyword.value, []).append(_is_float(arg.value, floats))
    return frozenset(name for name, answers in passed.items() if all(answers))


def _launches(kernel: KernelSyntax) -> Iterator[cst.Call]:
    name = kernel.function.name.value
    for node in kernel.module.parents:
        if isinstance(node, cst.Call) and launched(node.func, kernel.imported) == name:
            yield node


def _float_names(kernel: KernelSyntax, launch: cst.Call) -> frozenset[str]:
    """Parameters of the launcher that are floats."""
    parents = kernel.module.parents
    node: cst.CSTNode = launch
    while node in parents and not isinstance(node, cst.FunctionDef):
        node = parents[node]
    if not isinstance(node, cst.FunctionDef):
        return frozenset()
    return frozenset(
        param.name.value
        for param in parameters_of(node)
        if isinstance(param.default, cst.Float)
        or (
            param.annotation is not None
            and kernel.module.source(param.annotation.annotation) == "float"
        )
    )


def _is_float(value: cst.BaseExpression, floats: frozenset[str]) -> bool:
    match value:
        case cst.Float():
            return True
        case cst.Name():
            return value.value in floats
        case cst.UnaryOperation():
            return _is_float(value.expression, floats)
        case cst.BinaryOperation():
            if isinstance(value.operator, cst.Divide):
                return True
            return _is_float(value.left, floats) or _is_float(value.right, floats)
        case cst.Call():
            return isinstance(value.func, cst.Name) and value.func.value == "float"
    return False
