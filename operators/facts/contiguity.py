"""Buffers that every launch in a kernel's module makes contiguous itself."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.constants import literal
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.launcher import Launch, LauncherSyntax

_ALLOCATIONS = frozenset(
    {"empty", "zeros", "ones", "full", "new_empty", "new_zeros", "new_ones", "new_full",
     "contiguous"}
)  # fmt: skip
_VIEWS = frozenset({"view", "reshape", "flatten"})
"""Views of a contiguous tensor that are contiguous."""

KnownLaunch = tuple[LauncherSyntax, Launch]


def launches(kernel: KernelSyntax) -> tuple[KnownLaunch, ...]:
    """Launches of a kernel by the functions of its module, each with its launcher."""
    return tuple(_launches(kernel))


def _launches(kernel: KernelSyntax) -> Iterator[KnownLaunch]:
    name = kernel.function.name.value
    for node in kernel.module.parents:
        if isinstance(node, cst.FunctionDef) and node is not kernel.function:
            launcher = LauncherSyntax(
                kernel.module, node, node.name.value, kernel.imported, {name: kernel}
            )
            yield from ((launcher, launch) for launch in launcher.launches)


def is_always_one(known: tuple[KnownLaunch, ...], buffers: frozenset[str], stride: str) -> bool:
    """Whether every launch passes 1 for an innermost stride, or makes its buffers contiguous.

    False where the module launches the kernel nowhere.
    """
    return bool(known) and all(
        _is_one(launch, stride) or are_contiguous(((launcher, launch),), buffers)
        for launcher, launch in known
    )


def are_contiguous(known: tuple[KnownLaunch, ...], buffers: frozenset[str]) -> bool:
    """Whether every launch makes these buffers contiguous itself; False where none is known."""
    return bool(known) and all(
        _is_contiguous(launcher, launch, buffer) for launcher, launch in known for buffer in buffers
    )


def _is_one(launch: Launch, stride: str) -> bool:
    given = launch.arguments.get(stride)
    return given is not None and literal(given.value) == 1.0


def _is_contiguous(launcher: LauncherSyntax, launch: Launch, buffer: str) -> bool:
    given = launch.arguments.get(buffer)
    return given is not None and _made_contiguous(launcher, given.value, ())


def _made_contiguous(
    launcher: LauncherSyntax, node: cst.BaseExpression, seen: tuple[str, ...]
) -> bool:
    if isinstance(node, cst.Name):
        values = launcher.values(node.value)
        return (
            bool(values)
            and node.value not in seen
            and all(
                not launcher.conditions(value)
                and _made_contiguous(launcher, value, (*seen, node.value))
                for value in values
            )
        )
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    if any(arg.keyword is not None and arg.keyword.value == "memory_format" for arg in node.args):
        return False
    name = node.func.attr.value
    if name in _VIEWS:
        return _made_contiguous(launcher, node.func.value, seen)
    return name in _ALLOCATIONS
