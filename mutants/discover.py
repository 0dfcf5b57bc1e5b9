"""Find kernels in source, without importing it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

import libcst as cst
import msgspec

from gatecert.errors import InternalError
from gatecert.mutants.names import ModuleNames, module_names
from gatecert.mutants.records import Kernel, Launcher, Skip
from gatecert.operators.facts.kernel import KernelSyntax, ModuleSyntax
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.launched import kernel_name, launched

_JIT = "triton.jit"
_WRAPPERS = frozenset({"triton.autotune", "triton.heuristics"})
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def find_kernels(module_name: str, path: str, text: str) -> tuple[list[Kernel], list[Skip]]:
    """Every `@triton.jit` function of a module's text, and what looked like one and is not.

    Sees aliases of `triton.jit`, other decorators stacked on it, `triton.jit(function)` as a
    call, and functions nested in `if`, `try`, classes and functions. A kernel's `callees` are
    followed within the module; names of other modules are kept as imported (`link_callees`
    follows them).
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        reason = f"not Python that this interpreter can parse: {error.msg}"
        return [], [Skip(module_name, path, error.lineno or 0, reason)]
    scan = _scan(module_name, path, tree)
    counts: dict[str, int] = {}
    for found in scan.kernels:
        counts[found.qualname] = counts.get(found.qualname, 0) + 1
    local = {f.qualname: _references(f.node, scan) for f in scan.kernels}
    kernels, skips = [], list(scan.skips)
    for found in scan.kernels:
        if counts[found.qualname] > 1:
            reason = "defined more than once; source alone does not say which one is launched"
            skips.append(Skip(f"{module_name}:{found.qualname}", path, found.node.lineno, reason))
            continue
        kernels.append(
            Kernel(
                module=module_name,
                qualname=found.qualname,
                path=path,
                line=found.node.lineno,
                decorators=tuple(ast.unparse(d) for d in found.node.decorator_list),
                callees=_closure(f"{module_name}:{found.qualname}", module_name, local),
            )
        )
    return kernels, skips


def link_callees(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Follow callees across modules, so that each kernel names all that it calls.

    A name imported from a package that only re-exports it is found where exactly one kernel of
    that name lies beneath the package. Names that are no kernel are dropped.
    """
    kernels = list(kernels)
    known = {kernel.name: kernel for kernel in kernels}
    direct = {
        kernel.name: tuple(
            home for callee in kernel.callees if (home := home_of(callee, known)) is not None
        )
        for kernel in kernels
    }
    return [
        msgspec.structs.replace(kernel, callees=_reachable(kernel.name, direct))
        for kernel in kernels
    ]


def find_launchers(module_name: str, path: str, text: str) -> list[Launcher]:
    """Functions that launch a kernel by `kernel[grid](...)` or `wrap_triton(kernel)[grid](...)`;
    an unreadable text has none."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    scan = _scan(module_name, path, tree)
    launchers = []
    for qualname, function in _functions(tree):
        homes = _launches(_own_calls(function), scan).values()
        if homes:
            launches = tuple(dict.fromkeys(homes))
            launchers.append(Launcher(module_name, qualname, path, function.lineno, launches))
    return launchers


def kernel_syntax(module: ModuleSyntax, qualname: str) -> KernelSyntax:
    """The syntax of one kernel that `find_kernels` found in the same text.

    Raises:
        InternalError: the text has no function of that name.
    """
    tree = ast.parse(module.text)
    wanted = [node for name, node in _functions(tree) if name == qualname]
    by_line = {module.line(node): node for node in _cst_functions(module.tree)}
    if not wanted or wanted[0].lineno not in by_line:
        raise InternalError(f"no function {qualname!r} in the text that held it before")
    names = module_names("", False, tree)
    function = by_line[wanted[0].lineno]
    return KernelSyntax(module, function, qualname, names.language(), names.imported)


def launched_names(module_name: str, path: str, text: str) -> dict[str, str]:
    """The names that a module's text launches kernels by, each with its `module:qualname`."""
    tree = ast.parse(text)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return _launches(calls, _scan(module_name, path, tree))


def function_at(text: str, line: int) -> str:
    """Qualified name of the innermost function around a line; "" where there is none."""
    around = [
        (function.lineno, qualname)
        for qualname, function in _functions(ast.parse(text))
        if function.lineno <= line <= (function.end_lineno or function.lineno)
    ]
    return max(around)[1] if around else ""


@functools.lru_cache(maxsize=256)
def body_start(text: str, qualname: str) -> int | None:
    """The offset in characters of the first line of a function's body, after its decorators and
    parameters; None where the text has no function of that name, or several."""
    found = [node for name, node in _functions(ast.parse(text)) if name == qualname]
    if len(found) != 1:
        return None
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: found[0].body[0].lineno - 1])


def source_of(text: str, qualname: str) -> str | None:
    """The source of a function of the text with its decorators, or None where there is none of
    that name, or several."""
    try:
        found = [node for name, node in _functions(ast.parse(text)) if name == qualname]
    except SyntaxError:
        return None
    if len(found) != 1:
        return None
    (node,) = found
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.split("\n")[first - 1 : node.end_lineno])


@dataclass(frozen=True, slots=True)
class _Found:
    qualname: str
    node: _FunctionNode


@dataclass(frozen=True, slots=True)
class _Scan:
    names: ModuleNames
    kernels: tuple[_Found, ...]
    skips: tuple[Skip, ...]
    aliases: dict[str, str]
    """Local names that kernels are known by, when not their own."""
    renamed: dict[str, str]
    """What module-level names are bound to, where that is a name itself, `scaled = helper`, or
    the kernel of that name wrapped for a launch."""


def _scan(module_name: str, path: str, tree: ast.Module) -> _Scan:
    names = module_names(module_name, PurePath(path).name == "__init__.py", tree)
    functions = list(_functions(tree))
    by_name = dict(functions)
    kernels: list[_Found] = []
    skips: list[Skip] = []
    for qualname, node in functions:
        kinds = {kind for d in node.decorator_list if (kind := _decorator(d, names)) is not None}
        if _JIT in kinds:
            kernels.append(_Found(qualname, node))
        else:
            foreign = sorted(k for k in kinds if k.rpartition(".")[2] == "jit")
            skips += [
                Skip(f"{module_name}:{qualname}", path, node.lineno, _why_not(k)) for k in foreign
            ]
    aliases: dict[str, str] = {}
    for target, call in _jit_calls(tree, names):
        if isinstance(call.args[0], ast.Name) and call.args[0].id in by_name:
            qualname = call.args[0].id
            if target:
                aliases[target] = qualname
            if all(found.qualname != qualname for found in kernels):
                kernels.append(_Found(qualname, by_name[qualname]))
        else:
            reason = "triton.jit applied to something that is no function of this module"
            skips.append(
                Skip(f"{module_name}:{target or '<expression>'}", path, call.lineno, reason)
            )
    kernels.sort(key=lambda found: found.node.lineno)
    return _Scan(names, tuple(kernels), tuple(skips), aliases, _renamed(tree, names))


def _renamed(tree: ast.Module, names: ModuleNames) -> dict[str, str]:
    renamed: dict[str, str] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        value = kernel_name(node.value, names.imported)
        if value is None:
            continue
        for target in node.targets:
            name, seen = value, 0
            # A name bound in a circle is no kernel's.
            while name in renamed and seen < len(renamed):
                name, seen = renamed[name], seen + 1
            if isinstance(target, ast.Name) and name != target.id:
                renamed[target.id] = value
    return renamed


def _why_not(decorator: str) -> str:
    if decorator.startswith("triton.experimental.gluon"):
        return "a Gluon kernel: the operators know Triton's language only"
    return f"decorated by {decorator}, which is not triton.jit"


def _decorator(node: ast.expr, names: ModuleNames) -> str | None:
    """Absolute name of a decorator, whether or not it is called."""
    return names.resolve(node.func if isinstance(node, ast.Call) else node)


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _FunctionNode]]:
    """All functions with the qualified names that Python gives them, in order."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _FunctionNode):
            yield prefix + node.name, node
            yield from _functions(node, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        else:
            yield from _functions(node, prefix)


def _jit_calls(tree: ast.Module, names: ModuleNames) -> Iterator[tuple[str, ast.Call]]:
    """Calls `triton.jit(f)` with the name that the result is bound to ("" if none)."""
    targets: dict[int, str] = {}
    decorators: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for inner in _unwrapped(node.value, names):
                targets[id(inner)] = node.targets[0].id
        elif isinstance(node, _FunctionNode):
            decorators.update(id(d) for d in node.decorator_list)
    for node in ast.walk(tree):
        is_jit = isinstance(node, ast.Call) and names.resolve(node.func) == _JIT
        if is_jit and isinstance(node, ast.Call) and node.args and id(node) not in decorators:
            yield targets.get(id(node), ""), node


def _unwrapped(node: ast.expr, names: ModuleNames) -> Iterator[ast.expr]:
    """The expression, and what lies inside `triton.autotune(...)(...)` around it."""
    yield node
    wrapped = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Call)
        and names.resolve(node.func.func) in _WRAPPERS
    )
    if wrapped and isinstance(node, ast.Call) and node.args:
        yield from _unwrapped(node.args[0], names)


def _references(function: _FunctionNode, scan: _Scan) -> tuple[str, ...]:
    """Kernels that the function names, as `module:qualname`: whatever it names it may call,
    under another name too, or hand to a reduction or to a function that calls it."""
    nodes = (node for node in ast.walk(function) if isinstance(node, ast.Name | ast.Attribute))
    names = (name for node in nodes if (name := dotted(node)) is not None)
    found = (_qualified(name, scan) for name in names)
    return tuple(dict.fromkeys(name for name in found if name is not None))


def _launches(calls: Iterable[ast.Call], scan: _Scan) -> dict[str, str]:
    """The names that calls launch kernels by, each with its `module:qualname`."""
    names = (launched(call.func, scan.names.imported) for call in calls)
    found = ((name, _qualified(name, scan)) for name in names if name is not None)
    return {name: home for name, home in found if home is not None}


def _qualified(name: str, scan: _Scan) -> str | None:
    """`module:qualname` of a kernel of this module, or of anything imported from elsewhere."""
    local = scan.aliases.get(name, name)
    if any(found.qualname == local for found in scan.kernels):
        return f"{scan.names.module}:{local}"
    if name in scan.renamed:
        return _qualified(scan.renamed[name], scan)
    home = scan.names.absolute(name)
    if home is None or home.partition(".")[0] == "triton" or "." not in home:
        return None
    module, _, attribute = home.rpartition(".")
    return f"{module}:{attribute}"


def _closure(start: str, module: str, local: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return _reachable(start, {f"{module}:{name}": calls for name, calls in local.items()})


def _reachable(start: str, direct: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    queue = list(direct.get(start, ()))
    while queue:
        name = queue.pop(0)
        if name not in found and name != start:
            found[name] = None
            queue += direct.get(name, ())
    return tuple(found)


def home_of(name: str, known: Mapping[str, Kernel]) -> str | None:
    """The kernel that an imported name stands for, also through packages that re-export it."""
    if name in known:
        return name
    module, _, qualname = name.partition(":")
    beneath = [
        kernel.name
        for kernel in known.values()
        if kernel.qualname == qualname and kernel.module.startswith(f"{module}.")
    ]
    return beneath[0] if len(beneath) == 1 else None


def _own_calls(function: _FunctionNode) -> Iterator[ast.Call]:
    """Calls in a function's body, not those of functions defined inside it."""
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, _FunctionNode | ast.ClassDef):
            queue += ast.iter_child_nodes(node)


def _cst_functions(tree: cst.CSTNode) -> Iterator[cst.FunctionDef]:
    for child in tree.children:
        if isinstance(child, cst.FunctionDef):
            yield child
        if not isinstance(child, cst.BaseExpression):
            yield from _cst_functions(child)
