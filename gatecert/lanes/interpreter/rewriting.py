"""Rewrite a kernel's Python so that running it means what compiling it means.

Plain Python differs from Triton's language in a few places: an assigned number is a tensor, a
loop variable is a tensor of the bounds' type, `and`, `or`, `not`, chained comparisons, `min` and
`max` work element by element.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

from gatecert.lanes.interpreter.failures import LaneRefusal

_SEMANTICS = "_gatecert_semantics"
_FACTORY = "_gatecert_factory"


class KernelSemantics:
    """What rewritten code calls."""

    @staticmethod
    def assigned(value: Any) -> Any:
        """A number that is assigned becomes a tensor."""
        return triton_interpreter.interpreter_semantic.to_tensor(value, False)

    @staticmethod
    def called(function: Any) -> Any:
        """The function that a kernel means when it calls `range`, `min` or `max`."""
        if function is builtins.range:
            return tensor_range
        if function is builtins.min:
            return _minimum
        if function is builtins.max:
            return _maximum
        return function

    @staticmethod
    def true(value: Any) -> bool:
        """What a branch or a loop depends on."""
        if isinstance(value, tl.condition):
            value = value.condition
        if not isinstance(value, tl.tensor):
            return bool(value)
        data = value.handle.data
        if data.size != 1:
            raise ValueError(f"a block of shape {data.shape} is neither true nor false")
        return bool(data.item())

    @staticmethod
    def negated(value: Any) -> Any:
        """`not`, element by element."""
        if isinstance(value, tl.tensor):
            return triton_interpreter.interpreter_semantic.not_(value)
        return not value

    @staticmethod
    def both(*operands: Callable[[], Any]) -> Any:
        """`and`: plain values short-circuit, tensors are combined."""
        return _logical((operand() for operand in operands), False, "logical_and")

    @staticmethod
    def either(*operands: Callable[[], Any]) -> Any:
        """`or`: plain values short-circuit, tensors are combined."""
        return _logical((operand() for operand in operands), True, "logical_or")

    @staticmethod
    def chained(first: Any, *links: tuple[Callable[[Any, Any], Any], Callable[[], Any]]) -> Any:
        """`a < b < c`, each operand evaluated once."""

        def answers() -> Iterator[Any]:
            left = first
            for compare, operand in links:
                right = operand()
                yield compare(left, right)
                left = right

        return _logical(answers(), False, "logical_and")


def _logical(values: Iterator[Any], decides: bool, method: str) -> Any:
    plain: Any = None
    tensors: list[Any] = []
    for value in values:
        if isinstance(value, tl.tensor):
            tensors.append(value)
        elif bool(value) is decides:
            return value
        else:
            plain = value
    if not tensors:
        return plain
    result = tensors[-1]
    for value in reversed(tensors[:-1]):
        result = getattr(value, method)(result)
    return result


def tensor_range(start: Any, stop: Any = None, step: Any = 1, **hints: Any) -> Iterator[Any]:
    """`range` whose values are tensors of the type that its bounds promote to."""
    semantic = triton_interpreter.interpreter_semantic
    if stop is None:
        start, stop = 0, start
    bounds = [semantic.to_tensor(_plain(bound)) for bound in (start, stop, step)]
    dtype = bounds[0].dtype
    for bound in bounds[1:]:
        dtype = semantic.integer_promote_impl(dtype, bound.dtype)
    values = builtins.range(*(int(bound.__index__()) for bound in bounds))
    # Constants alone, as in `range(UNROLL)`, hold a loop to one turn whatever the sizes are.
    if len(values) > 1 or any(isinstance(bound, tl.tensor) for bound in (start, stop, step)):
        triton_interpreter.interpreter_builder.memory.accesses.note_loop(len(values))
    for value in values:
        yield semantic.scalar_constant(value, dtype)


def _minimum(*values: Any, **named: Any) -> Any:
    if len(values) == 2 and any(isinstance(value, tl.tensor) for value in values):
        return tl.minimum(*values)
    return builtins.min(*map(_plain, values), **named)


def _maximum(*values: Any, **named: Any) -> Any:
    if len(values) == 2 and any(isinstance(value, tl.tensor) for value in values):
        return tl.maximum(*values)
    return builtins.max(*map(_plain, values), **named)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def rewrite(function: types.FunctionType) -> Callable[..., Any]:
    """The function with the language's own meaning; same globals, defaults and line numbers.

    Raises:
        LaneRefusal: the source is not to be had.
    """
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise LaneRefusal(f"the source of {function.__qualname__} is not available") from error
    definition = ast.parse(source).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise LaneRefusal(f"{function.__qualname__} is not defined by a def statement")
    _strip(definition)
    definition = _Rewriter().visit(definition)
    cells = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    # A factory hands over the helpers and the variables of an enclosing function, so that the
    # module's own globals stay as they are.
    tree = ast.parse(f"def {_FACTORY}({', '.join([_SEMANTICS, *cells])}): return {definition.name}")
    factory = tree.body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body.insert(0, definition)
    ast.fix_missing_locations(tree)
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    namespace: dict[str, Any] = {}
    code = compile(tree, function.__code__.co_filename, "exec")
    exec(code, function.__globals__, namespace)
    rewritten: Callable[..., Any] = namespace[_FACTORY](KernelSemantics, *cells.values())
    assert isinstance(rewritten, types.FunctionType)
    rewritten.__defaults__ = function.__defaults__
    rewritten.__kwdefaults__ = function.__kwdefaults__
    return rewritten


def _strip(definition: ast.FunctionDef) -> None:
    """Drop decorators and annotations, and keep defaults from being evaluated again."""
    definition.decorator_list = []
    definition.returns = None
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]


class _Rewriter(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call("assigned", node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if (isinstance(function, ast.Name) and function.id in {"range", "min", "max"}) or (
            isinstance(function, ast.Attribute) and function.attr == "range"
        ):
            node.func = _call("called", function)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._visit_test(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._visit_test(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._visit_test(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return self._visit_test(node)

    def _visit_test(self, node: ast.If | ast.While | ast.IfExp | ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("true", node.test)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("negated", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _call(name, *map(_later, node.values))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        links = [
            ast.Tuple([_comparison(op), _later(operand)], ast.Load())
            for op, operand in zip(node.ops, node.comparators, strict=True)
        ]
        return _call("chained", node.left, *links)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    helper = ast.Attribute(ast.Name(_SEMANTICS, ast.Load()), name, ast.Load())
    call = ast.Call(helper, list(arguments), [])
    return ast.copy_location(call, arguments[0])


def _later(expression: ast.expr) -> ast.Lambda:
    return ast.copy_location(ast.Lambda(_parameters([]), expression), expression)


def _comparison(op: ast.cmpop) -> ast.Lambda:
    left, right = ast.Name("left", ast.Load()), ast.Name("right", ast.Load())
    return ast.Lambda(_parameters(["left", "right"]), ast.Compare(left, [op], [right]))


def _parameters(names: list[str]) -> ast.arguments:
    return ast.arguments(
        posonlyargs=[],
        args=[ast.arg(name) for name in names],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
