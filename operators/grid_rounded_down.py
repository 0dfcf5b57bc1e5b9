"""Round a grid down: the last, partial block of a size gets no program."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.allocation import integer
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.edits import replace
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.launcher import Launch, LauncherSyntax, bare_text
from gatecert.operators.records import (
    Edit,
    Example,
    ObservableBy,
    Operator,
    Reveal,
    Site,
    no_sites,
)

_CEILINGS = frozenset({"triton.cdiv", "triton.language.cdiv"})
_COMBINING = frozenset({"int", "max", "min"})


def find(launcher: LauncherSyntax) -> Iterator[Site]:
    """One site per division that rounds up in a grid, also through a name or a lambda.

    The elements of the last block are never computed (a tail), nor anything at all of a size
    below the block. Programs that loop over their tiles take over the missing ones' work, as
    long as there is a program at all.
    """
    found: dict[cst.BaseExpression, Site] = {}
    for launch in launcher.launches:
        for node, axis in _sizing(launcher, launch.grid):
            parts = _rounded_up(launcher, node)
            if parts is None or node in found:
                continue
            size, block = (_operand(launcher, part) for part in parts)
            shared = _is_shared_out(launch, axis)
            found[node] = Site(
                edits=(_floor(launcher, node, f"{size} // {block}"),),
                line=launcher.module.line(node),
                detail=f"the grid of {launch.kernel} rounds {size} / {block} down",
                observable_by=(ObservableBy.VALUES,),
                reveal=(Reveal.SHORT,) if shared else (Reveal.SHORT, Reveal.TAIL),
            )
    yield from found.values()


def _sizing(
    launcher: LauncherSyntax, grid: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, int]]:
    """Expressions that a grid's sizes are made of, definitions of names included, and the axis
    that they size."""
    seen: dict[cst.BaseExpression, int] = {}
    queue: list[tuple[cst.BaseExpression, int]] = [(grid, 0)]
    while queue:
        node, axis = queue.pop(0)
        if node in seen:
            continue
        seen[node] = axis
        match node:
            case cst.Name():
                queue += ((value, axis) for value in launcher.values(node.value))
            case cst.Tuple() | cst.List():
                queue += ((e.value, axis + i) for i, e in enumerate(node.elements))
            case cst.Lambda():
                queue.append((node.body, axis))
            case cst.BinaryOperation(operator=cst.Multiply() | cst.Add()):
                queue += ((node.left, axis), (node.right, axis))
            case cst.IfExp():
                queue += ((node.body, axis), (node.orelse, axis))
            case cst.Call() if dotted(node.func) in _COMBINING:
                queue += ((arg.value, axis) for arg in node.args)
    yield from seen.items()


def _rounded_up(
    launcher: LauncherSyntax, node: cst.BaseExpression
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Size and block of `cdiv(size, block)`, `(size + block - 1) // block`, `-(-size // block)`
    or `ceil(size / block)`."""
    match node:
        case cst.Call(args=[cst.Arg(value=size, keyword=None), cst.Arg(value=block)]):
            return (size, block) if launcher.resolve(node.func) in _CEILINGS else None
        case cst.Call(args=[cst.Arg(value=cst.BinaryOperation(size, cst.Divide(), block))]):
            return (size, block) if launcher.resolve(node.func) == "math.ceil" else None
        case cst.UnaryOperation(
            cst.Minus(),
            cst.BinaryOperation(cst.UnaryOperation(cst.Minus(), size), cst.FloorDivide(), block),
        ):
            return size, block
        case cst.BinaryOperation(total, cst.FloorDivide(), block):
            size_or_none = _without_rounding(launcher, total, block)
            return None if size_or_none is None else (size_or_none, block)
    return None


def _without_rounding(
    launcher: LauncherSyntax, total: cst.BaseExpression, block: cst.BaseExpression
) -> cst.BaseExpression | None:
    """The size in `size + block - 1`, however its terms are grouped."""
    terms = list(_terms(total, 1))
    texts = [(sign, bare_text(launcher.module, term)) for sign, term in terms]
    by = bare_text(launcher.module, block)
    wanted = [(1, by), (-1, "1")]
    if by.isdigit():
        wanted = [(1, str(int(by) - 1))] if (1, by) not in texts else wanted
    for term in wanted:
        if term not in texts:
            return None
        position = texts.index(term)
        del texts[position], terms[position]
    return terms[0][1] if len(terms) == 1 and terms[0][0] == 1 else None


def _terms(node: cst.BaseExpression, sign: int) -> Iterator[tuple[int, cst.BaseExpression]]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.operator, cst.Add) else -sign)
    else:
        yield sign, node


def _floor(launcher: LauncherSyntax, node: cst.BaseExpression, text: str) -> Edit:
    parent = launcher.module.parents[node]
    inside = isinstance(parent, cst.BinaryOperation | cst.UnaryOperation) and not node.lpar
    return replace(launcher.module, node, f"({text})" if inside else text)


def _operand(launcher: LauncherSyntax, node: cst.BaseExpression) -> str:
    start, end = launcher.module.inner_span(node)
    text = launcher.module.text[start:end]
    atom = isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.BaseNumber)
    return text if atom else f"({text})"


def _is_shared_out(launch: Launch, axis: int) -> bool:
    """Whether the kernel asks how many programs there are on the axis, and so can share the
    work out among fewer."""
    if launch.syntax is None:
        return False
    flow = analysis(launch.syntax).flow
    asked = (flow.argument(call, "axis") for call in flow.calls("num_programs"))
    return any(a is not None and integer(a.value) in (axis, None) for a in asked)


_COPY = """\
@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x, mask=offs < n)


def launch(x):
    y = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    copy[grid](x, y, n, BLOCK=256)
    return y
"""
_TILES = """\
@triton.jit
def tiles(x_ptr, y_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < m) & (cols < n)
    x = tl.load(x_ptr + rows * n + cols, mask=inside)
    tl.store(y_ptr + rows * n + cols, x, mask=inside)


def launch(x, block: int = 32):
    m, n = x.shape
    y = torch.empty_like(x)
    half = block // 2
    columns = (n + 63) // 64
    tiles[((m + half - 1) // half, columns)](x, y, m, n, BLOCK_M=half, BLOCK_N=64)
    return y
"""
_PRODUCT = """\
@triton.jit
def tiles(x_ptr, m, n, BLOCK: tl.constexpr):
    first = tl.program_id(0) // tl.cdiv(n, BLOCK) * n
    offs = tl.program_id(0) % tl.cdiv(n, BLOCK) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + first + offs, 0.0, mask=offs < n)


def launch(x, heads):
    m, n = x.shape
    tiles[(heads * triton.cdiv(n + 1, 32), 1)](x, m, n, BLOCK=32)
"""

OPERATOR = Operator(
    name="grid-rounded-down",
    bug_class="grid-limit",
    summary="A launcher's grid is rounded down: the last partial block gets no program.",
    evidence="textbook",
    find=no_sites,
    find_in_launcher=find,
    version=2,
    applies=(
        Example(_COPY, (_COPY.replace('triton.cdiv(n, meta["BLOCK"])', 'n // meta["BLOCK"]'),)),
        Example(
            _TILES,
            (
                _TILES.replace("(n + 63) // 64", "n // 64"),
                _TILES.replace("(m + half - 1) // half", "m // half"),
            ),
        ),
        Example(_PRODUCT, (_PRODUCT.replace("triton.cdiv(n + 1, 32)", "((n + 1) // 32)"),)),
    ),
    does_not_apply=(
        """\
@triton.jit
def rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + offs, mask=offs < n)
    tl.store(y_ptr + tl.program_id(0) * n + offs, x, mask=offs < n)


def launch(x):
    m, n = x.shape
    y = torch.empty_like(x)
    rows[(m,)](x, y, n, BLOCK=triton.cdiv(n, 64) * 64)
    return y
""",
        """\
@triton.jit
def halves(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, 0.0, mask=offs < n)


def launch(x):
    n = x.numel()
    halves[((n + 2) // 2,)](x, n, BLOCK=2)
""",
    ),
)
