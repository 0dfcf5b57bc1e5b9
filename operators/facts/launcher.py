"""One launcher's syntax: the Python function around `kernel[grid](...)`, and what it passes.

Names are followed without regard to the order of statements: a name stands for everything that
the launcher ever assigns to it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.definitions import parameters_of
from gatecert.operators.facts.kernel import KernelSyntax, ModuleSyntax
from gatecert.operators.facts.language import absolute, dotted
from gatecert.operators.facts.launched import launched

_SAME_TENSOR = frozenset(
    {"view", "view_as", "reshape", "contiguous", "flatten", "unflatten", "squeeze", "unsqueeze",
     "t", "transpose", "permute", "detach", "expand", "expand_as", "to", "requires_grad_",
     "zero_", "fill_"}
)  # fmt: skip
"""Methods whose result holds what the tensor holds."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One `kernel[grid](...)`, the kernel by itself or in `wrap_triton`.

    `kernel` is the name that the launcher uses; `syntax` is None where the kernel's source is
    not known. `arguments` maps the kernel's parameters to what is passed for them. It is
    complete unless `opaque`: arguments by `*` or `**`, or by position to an unknown kernel.
    What an autotuner or a heuristic supplies is no argument of the launch.
    """

    call: cst.Call
    kernel: str
    grid: cst.BaseExpression
    syntax: KernelSyntax | None
    arguments: Mapping[str, cst.Arg]
    opaque: bool

    def parameter(self, name: str) -> cst.Param | None:
        """The kernel's parameter of that name, where its source is known."""
        params = parameters_of(self.syntax.function) if self.syntax is not None else ()
        return next((p for p in params if p.name.value == name), None)


@dataclass(frozen=True)
class LauncherSyntax:
    """One function that launches kernels, inside its module.

    `imported` maps local names to the absolute names that they stand for; `kernels` maps the
    names of kernels in this module to their syntax, None where that is elsewhere and unknown.
    """

    module: ModuleSyntax
    function: cst.FunctionDef
    qualname: str
    imported: Mapping[str, str]
    kernels: Mapping[str, KernelSyntax | None]

    @functools.cached_property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch of a known kernel, in source order."""
        found = (self._launch(node) for node in self.nodes if isinstance(node, cst.Call))
        return tuple(launch for launch in found if launch is not None)

    @functools.cached_property
    def nodes(self) -> tuple[cst.CSTNode, ...]:
        """Every node of the body in source order; functions defined inside are left out."""
        return tuple(_nodes(self.function.body))

    def resolve(self, node: cst.BaseExpression) -> str:
        """The absolute name of `a.b.c`, as far as imports tell; "" for anything else."""
        return absolute(dotted(node) or "", self.imported)

    def method(self, node: cst.CSTNode) -> tuple[cst.BaseExpression, str] | None:
        """Receiver and name of `value.name(...)`, unless it calls a module's function."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return None
        return None if self.resolve(node.func) else (node.func.value, node.func.attr.value)

    # -- names

    def values(self, name: str) -> tuple[cst.BaseExpression, ...]:
        """All expressions that the launcher gives the name, unpacked ones left out."""
        return self._values.get(name, ())

    def shape_names(self, tensor: str) -> tuple[str, ...]:
        """The names that `tensor`'s shape is unpacked into, in order; () if it is not."""
        return self._shapes.get(tensor, ())

    def parameters(self) -> Mapping[str, cst.Param]:
        """The launcher's own parameters that nothing is assigned to."""
        return {
            p.name.value: p
            for p in parameters_of(self.function)
            if p.name.value not in self._assigned
        }

    def tensors(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
        """Expressions whose tensor this one may be: through names, branches and views."""
        found: dict[cst.BaseExpression, None] = {}
        queue = [node]
        while queue:
            current = queue.pop(0)
            if current in found:
                continue
            found[current] = None
            match current:
                case cst.Name():
                    queue += self.values(current.value)
                case cst.IfExp():
                    queue += (current.body, current.orelse)
                case cst.NamedExpr() | cst.Subscript():
                    queue.append(current.value)
                case cst.Attribute(attr=cst.Name("T" | "mT" | "data")):
                    queue.append(current.value)
                case cst.Call():
                    method = self.method(current)
                    if method is not None and method[1] in _SAME_TENSOR:
                        queue.append(method[0])
        return tuple(found)

    def conditions(self, node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
        """Branches, loops and handlers of the launcher around a node, innermost first."""
        found = []
        while node is not self.function and node in self.module.parents:
            node = self.module.parents[node]
            if isinstance(node, cst.If | cst.For | cst.While | cst.Try | cst.IfExp | cst.Else):
                found.append(node)
        return tuple(found)

    @functools.cached_property
    def _values(self) -> Mapping[str, tuple[cst.BaseExpression, ...]]:
        found: dict[str, list[cst.BaseExpression]] = {}
        for target, value in self._assignments():
            for name, part in _paired(target, value):
                found.setdefault(name, []).append(part)
        for function in _inner_functions(self.function.body):
            found.setdefault(function.name.value, []).extend(_returned(function))
        return {name: tuple(values) for name, values in found.items()}

    @functools.cached_property
    def _shapes(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for target, value in self._assignments():
            tensor = self._shape_of(value)
            if tensor and isinstance(target, cst.Tuple) and tensor not in found:
                found[tensor] = tuple(dotted(e.value) or "" for e in target.elements)
        return found

    def _shape_of(self, node: cst.BaseExpression) -> str:
        method = self.method(node)
        if isinstance(node, cst.Attribute) and node.attr.value == "shape":
            return dotted(node.value) or ""
        if method is not None and method[1] in ("size", "stride") and _no_arguments(node):
            return dotted(method[0]) or ""
        return ""

    @functools.cached_property
    def _assigned(self) -> frozenset[str]:
        targets = [target for target, _ in self._assignments()]
        targets += [n.target for n in self.nodes if isinstance(n, cst.AugAssign | cst.For)]
        names = (name for target in targets for name in _nodes(target))
        return frozenset(name.value for name in names if isinstance(name, cst.Name))

    def _assignments(self) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
        for node in self.nodes:
            if isinstance(node, cst.Assign):
                yield from ((target.target, node.value) for target in node.targets)
            elif isinstance(node, cst.AnnAssign | cst.NamedExpr) and node.value is not None:
                yield node.target, node.value

    def _launch(self, call: cst.Call) -> Launch | None:
        kernel = launched(call.func, self.imported)
        if not isinstance(call.func, cst.Subscript) or kernel is None or kernel not in self.kernels:
            return None
        syntax = self.kernels[kernel]
        names = [p.name.value for p in parameters_of(syntax.function)] if syntax else []
        arguments: dict[str, cst.Arg] = {}
        opaque = starred = False
        for position, arg in enumerate(call.args):
            if arg.star:
                opaque = True
                starred = starred or arg.star == "*"
            elif arg.keyword is not None:
                arguments[arg.keyword.value] = arg
            elif not starred and position < len(names):
                arguments[names[position]] = arg
            else:
                opaque = True
        return Launch(call, kernel, _grid(call.func), syntax, arguments, opaque)


def bare_text(module: ModuleSyntax, node: cst.CSTNode) -> str:
    """The node's text without white space or parentheses of its own: equal for equal sizes."""
    start, end = module.inner_span(node)
    return "".join(module.text[start:end].split())


def _grid(subscript: cst.Subscript) -> cst.BaseExpression:
    """What stands between the brackets; `kernel[a, b]` has its elements as a tuple."""
    parts = [e.slice.value for e in subscript.slice if isinstance(e.slice, cst.Index)]
    return parts[0] if len(parts) == 1 else cst.Tuple([cst.Element(part) for part in parts])


def _nodes(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield root
    for child in root.children:
        if not isinstance(child, cst.FunctionDef | cst.ClassDef):
            yield from _nodes(child)


def _inner_functions(body: cst.BaseSuite) -> Iterator[cst.FunctionDef]:
    for node in _nodes(body):
        yield from (child for child in node.children if isinstance(child, cst.FunctionDef))


def _returned(function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    for node in _nodes(function.body):
        if isinstance(node, cst.Return) and node.value is not None:
            yield node.value


def _paired(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[str, cst.BaseExpression]]:
    if isinstance(target, cst.Name):
        yield target.value, value
    elif isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        for left, right in zip(target.elements, value.elements, strict=False):
            yield from _paired(left.value, right.value)


def _no_arguments(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and not node.args
