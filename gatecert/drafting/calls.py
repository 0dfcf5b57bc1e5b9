"""Which functions of a project launch kernels, themselves or through others."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gatecert.drafting.parameters import FunctionNode
from gatecert.drafting.project import Project, SourceFile
from gatecert.mutants.discover import home_of
from gatecert.mutants.records import Kernel
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.launched import launched

_MOST_REEXPORTS = 8


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the project that is no kernel. `name` is `module:qualname`."""

    file: SourceFile
    qualname: str
    node: FunctionNode
    launches: tuple[str, ...]
    """Kernels that it launches itself, as `module:qualname`."""
    calls: tuple[str, ...]
    """Functions of the project that it calls."""

    @property
    def name(self) -> str:
        """`module:qualname`."""
        return f"{self.file.module}:{self.qualname}"

    @property
    def is_public(self) -> bool:
        """A module's own function, without an underscore in front, and no test or fixture."""
        plain = "." not in self.qualname and not self.qualname.startswith(("_", "test_"))
        return plain and not any("fixture" in ast.unparse(d) for d in self.node.decorator_list)


@dataclass(frozen=True, slots=True)
class Calls:
    """All functions by name, and what each leads to."""

    functions: Mapping[str, Function]
    _reached: dict[str, frozenset[str]] = field(default_factory=dict)

    def leads_to(self, name: str) -> frozenset[str]:
        """The functions that it calls, directly or through others."""
        if name not in self._reached:
            found: set[str] = set()
            queue = list(self.functions[name].calls)
            while queue:
                callee = queue.pop()
                if callee not in found:
                    found.add(callee)
                    queue += self.functions[callee].calls
            self._reached[name] = frozenset(found)
        return self._reached[name]

    def kernels(self, name: str) -> tuple[str, ...]:
        """The kernels that calling it launches, in the order of their launchers."""
        names = [name, *sorted(self.leads_to(name))]
        return tuple(dict.fromkeys(k for n in names for k in self.functions[n].launches))


def read_calls(project: Project) -> Calls:
    """Every function of the project with what it launches and calls.

    A call is followed by name: within a module, through imports and re-exports, to methods of the
    own class, and from `Class.apply` to `Class.forward`.
    """
    nodes: dict[str, tuple[SourceFile, str, FunctionNode]] = {}
    for file in project.files.values():
        for qualname, node in _functions(file.tree):
            name = f"{file.module}:{qualname}"
            if name not in project.kernels:
                nodes[name] = (file, qualname, node)
    functions = {}
    for name, (file, qualname, node) in nodes.items():
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
        launches = (_launched(call, file, project.kernels) for call in calls)
        callees = (_callee(call, file, qualname, nodes, project) for call in calls)
        functions[name] = Function(
            file=file,
            qualname=qualname,
            node=node,
            launches=tuple(dict.fromkeys(k for k in launches if k is not None)),
            calls=tuple(dict.fromkeys(c for c in callees if c is not None and c != name)),
        )
    return Calls(functions)


def resolve_export(name: str, project: Project) -> str:
    """Where an imported dotted name is defined, followed through modules that re-export it."""
    for _ in range(_MOST_REEXPORTS):
        module, _, attribute = name.rpartition(".")
        file = project.files.get(module)
        if file is None or attribute not in file.names.imported:
            return name
        name = file.names.imported[attribute]
    return name


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, FunctionNode]]:
    """All functions with their qualified names, those inside functions aside: their calls count
    as calls of the function around them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FunctionNode):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        else:
            yield from _functions(node, prefix)


def _launched(call: ast.Call, file: SourceFile, kernels: Mapping[str, Kernel]) -> str | None:
    """The kernel that a call launches."""
    name = launched(call.func, file.names.imported)
    if name is None:
        return None
    own = f"{file.module}:{_alias(name, file)}"
    if own in kernels:
        return own
    home = file.names.absolute(name)
    if home is None or "." not in home:
        return None
    module, _, attribute = home.rpartition(".")
    return home_of(f"{module}:{attribute}", kernels)


def _alias(name: str, file: SourceFile) -> str:
    """What a module-level name was made of, by `name = triton.jit(function)` or around it."""
    for node in file.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            targets = [t.id for t in node.targets if isinstance(t, ast.Name)]
            inner = node.value
            while inner.args and isinstance(inner.args[0], ast.Call):
                inner = inner.args[0]
            if name in targets and inner.args and isinstance(inner.args[0], ast.Name):
                return inner.args[0].id
    return name


def _callee(
    call: ast.Call,
    file: SourceFile,
    qualname: str,
    nodes: Mapping[str, object],
    project: Project,
) -> str | None:
    name = dotted(call.func)
    if name is None:
        return None
    for candidate in _meanings(name, file, qualname, project):
        if candidate in nodes:
            return candidate
    return None


def _meanings(name: str, file: SourceFile, qualname: str, project: Project) -> Iterable[str]:
    """The functions that a called name may stand for, as `module:qualname`."""
    root, _, rest = name.partition(".")
    holder = qualname.rpartition(".")[0]
    if root in ("self", "cls") and rest and holder:
        yield f"{file.module}:{holder}.{rest}"
    yield f"{file.module}:{name}"
    if name.endswith(".apply"):
        yield f"{file.module}:{name.removesuffix('apply')}forward"
    home = file.names.imported.get(root)
    if home is None:
        return
    full = f"{home}.{rest}" if rest else home
    if full.endswith(".apply"):
        owner = resolve_export(full.removesuffix(".apply"), project)
        module, _, attribute = owner.rpartition(".")
        yield f"{module}:{attribute}.forward"
    module, _, attribute = resolve_export(full, project).rpartition(".")
    yield f"{module}:{attribute}"
