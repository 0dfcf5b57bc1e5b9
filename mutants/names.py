"""What a module calls Triton's decorators and the functions it imports: read from source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gatecert.operators.facts.language import absolute, dotted

_HOMES = {
    "triton.runtime.jit.jit": "triton.jit",
    "triton.runtime.jit": "triton.jit",
    "triton.runtime.autotune": "triton.autotune",
    "triton.runtime.autotuner.autotune": "triton.autotune",
    "triton.runtime.heuristics": "triton.heuristics",
    "triton.runtime.autotuner.heuristics": "triton.heuristics",
    "triton.runtime.Config": "triton.Config",
    "triton.runtime.autotuner.Config": "triton.Config",
}


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """Local names of a module and the absolute dotted names that they stand for."""

    module: str
    imported: dict[str, str]

    def resolve(self, node: ast.expr) -> str | None:
        """The absolute dotted name of `a.b.c`, or None where its root is not imported."""
        name = dotted(node)
        return None if name is None else self.absolute(name)

    def absolute(self, name: str) -> str | None:
        """The same for the text `a.b.c`."""
        full = absolute(name, self.imported)
        return _HOMES.get(full, full) or None

    def language(self) -> frozenset[str]:
        """Names under which the module reaches `triton.language`."""
        known = {name for name, home in self.imported.items() if home == "triton.language"}
        roots = (name for name, home in self.imported.items() if home == "triton")
        return frozenset(known | {f"{root}.language" for root in roots})


def module_names(module: str, is_package: bool, tree: ast.Module) -> ModuleNames:
    """Read every import of the module, and plain aliases of what it imports (`jit = triton.jit`).

    Imports inside `if`, `try` and functions count too: the last one wins.
    """
    imported: dict[str, str] = {}
    names = ModuleNames(module, imported)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                home = alias.name if alias.asname else alias.name.partition(".")[0]
                imported[alias.asname or home] = home
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, is_package, node)
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{source}.{alias.name}"
    for target, value in _aliases(tree):
        resolved = names.resolve(value)
        if resolved is not None and resolved.startswith(("triton.", "torch.library.")):
            imported.setdefault(target, resolved)
    return names


def _aliases(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value


def _absolute(module: str, is_package: bool, node: ast.ImportFrom) -> str:
    """The absolute name of the module that a `from` import reads."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*kept, *([node.module] if node.module else [])])
