"""Hand a kernel less than the launcher knows: a default, nothing, or another dim's stride."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import msgspec

from gatecert.operators.facts.allocation import integer, least_rank
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.definitions import DefinitionKind, parameters_of
from gatecert.operators.facts.edits import drop_argument, replace
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.launcher import Launch, LauncherSyntax, bare_text
from gatecert.operators.records import (
    Example,
    ObservableBy,
    Operator,
    Reveal,
    Site,
    no_sites,
)

_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "warmup"})


def find(launcher: LauncherSyntax) -> Iterator[Site]:
    """Per launch argument: the launcher's own optional parameter becomes its default, a keyword
    whose kernel parameter has a default goes, `x.stride(0)` becomes `x.stride(1)`.

    What the kernel never uses shows nothing, nor does an option that no caller in the module
    passes on.
    """
    for launch in launcher.launches:
        for parameter, arg in launch.arguments.items():
            if _is_option(launch, parameter):
                continue
            found = (
                *_to_default(launcher, launch, parameter, arg),
                *_dropped(launcher, launch, parameter, arg),
                *_other_stride(launcher, launch, parameter, arg),
            )
            for site in found:
                yield site if _is_used(launch, parameter) else _unseen(site)


def _is_option(launch: Launch, name: str) -> bool:
    """Whether it tells Triton how to run the kernel, and the kernel nothing."""
    if launch.syntax is None:
        return name in _OPTIONS
    return launch.parameter(name) is None


def _to_default(
    launcher: LauncherSyntax, launch: Launch, parameter: str, arg: cst.Arg
) -> Iterator[Site]:
    own = launcher.parameters().get(arg.value.value) if isinstance(arg.value, cst.Name) else None
    if own is None or own.default is None or not _is_plain(launcher, own.default):
        return
    default = bare_text(launcher.module, own.default)
    if default == "None" and not _takes_none(launch, parameter):
        return
    if arg.keyword is not None and default == _declared_default(launch, parameter):
        return  # the same as dropping it
    site = Site(
        edits=(replace(launcher.module, arg.value, default),),
        line=launcher.module.line(arg.value),
        detail=f"{launch.kernel} gets {default} as {parameter}, whatever {own.name.value} is",
        observable_by=(ObservableBy.VALUES,),
        reveal=(Reveal.NON_DEFAULT,),
        variant="default",
    )
    yield site if _is_passed(launcher, own.name.value) else _unseen(site)


def _dropped(
    launcher: LauncherSyntax, launch: Launch, parameter: str, arg: cst.Arg
) -> Iterator[Site]:
    default = _declared_default(launch, parameter)
    if arg.keyword is None or default in (None, bare_text(launcher.module, arg.value)):
        return
    name = dotted(arg.value)
    is_fixed = name in ("True", "False") or isinstance(arg.value, cst.BaseNumber)
    yield Site(
        edits=(drop_argument(launcher.module, launch.call, arg),),
        line=launcher.module.line(arg.value),
        detail=f"{launch.kernel} is not given {parameter} and takes its default",
        observable_by=(ObservableBy.VALUES,),
        reveal=(Reveal.ANY,) if is_fixed else (Reveal.NON_DEFAULT,),
        variant="dropped",
    )


def _other_stride(
    launcher: LauncherSyntax, launch: Launch, parameter: str, arg: cst.Arg
) -> Iterator[Site]:
    call = arg.value.body if isinstance(arg.value, cst.IfExp) else arg.value
    method = launcher.method(call)
    if method is None or method[1] != "stride" or not isinstance(call, cst.Call):
        return
    dim = integer(call.args[0].value) if len(call.args) == 1 else None
    if dim is None:
        return
    tensor, rank = method[0], least_rank(launcher, method[0])
    other = _neighbour(dim, rank)
    if other is None:
        return
    # The pitch of the last dim is the smallest: any other in its place leads past the end.
    is_last = dim in (-1, rank - 1)
    bounds = (ObservableBy.BOUNDS,) if is_last else ()
    yield Site(
        edits=(replace(launcher.module, call.args[0].value, str(other)),),
        line=launcher.module.line(call),
        detail=f"{launch.kernel} gets {dotted(tensor) or 'the tensor'}.stride({other}) "
        f"as {parameter}",
        observable_by=(ObservableBy.VALUES, *bounds),
        reveal=(Reveal.ANY,) if is_last else (Reveal.SEVERAL_ROWS,),
        variant="other-stride",
    )


def _neighbour(dim: int, rank: int) -> int | None:
    """The next dim inwards, or outwards from the last; None for a tensor of one dim."""
    if rank < 2:
        return None
    if dim >= 0:
        return dim + 1 if dim + 1 < rank else dim - 1
    return dim + 1 if dim < -1 else dim - 1


def _unseen(site: Site) -> Site:
    return msgspec.structs.replace(site, observable_by=(), reveal=())


def _declared_default(launch: Launch, parameter: str) -> str | None:
    """The default that the kernel itself has for a parameter, as text."""
    declared = launch.parameter(parameter)
    if declared is None or declared.default is None or launch.syntax is None:
        return None
    return bare_text(launch.syntax.module, declared.default)


def _is_plain(launcher: LauncherSyntax, default: cst.BaseExpression) -> bool:
    """Whether a default means the same inside the launcher: a literal, or a name of the module."""
    if isinstance(default, cst.UnaryOperation):
        default = default.expression
    if isinstance(default, cst.BaseNumber | cst.SimpleString):
        return True
    name = dotted(default)
    own = {p.name.value for p in parameters_of(launcher.function)}
    return name is not None and name.partition(".")[0] not in own


def _takes_none(launch: Launch, parameter: str) -> bool:
    """Whether the kernel asks if the argument is None."""
    if launch.syntax is None:
        return False
    flow = analysis(launch.syntax).flow
    for node in flow.expressions():
        if not isinstance(node, cst.Comparison):
            continue
        sides = (node.left, *(target.comparator for target in node.comparisons))
        names = {side.value for side in sides if isinstance(side, cst.Name)}
        if {parameter, "None"} <= names:
            return True
    return False


def _is_used(launch: Launch, parameter: str) -> bool:
    """Whether the kernel does anything with the parameter; taken for granted where unknown."""
    if launch.syntax is None or launch.parameter(parameter) is None:
        return True
    flow = analysis(launch.syntax).flow
    return any(
        flow.uses(definition)
        for definition in flow.definitions(parameter)
        if definition.kind is DefinitionKind.PARAMETER
    )


def _is_passed(launcher: LauncherSyntax, name: str) -> bool:
    """Whether some call of the launcher in its module passes the parameter, or none calls it."""
    position = [p.name.value for p in parameters_of(launcher.function)].index(name)
    calls = [
        node
        for node in launcher.module.parents
        if isinstance(node, cst.Call) and dotted(node.func) == launcher.function.name.value
    ]
    return not calls or any(
        len(call.args) > position
        or any(arg.star or (arg.keyword and arg.keyword.value == name) for arg in call.args)
        for call in calls
    )


_SCALE = """\
@triton.jit
def scale(x_ptr, y_ptr, n, factor, shift, SQUARE: tl.constexpr = False, BLOCK: tl.constexpr = 64):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    if shift is not None:
        x += shift
    if SQUARE:
        x *= x
    tl.store(y_ptr + offs, x * factor, mask=offs < n)


def launch(x, factor=1.0, shift=None, square: bool = False):
    y = torch.empty_like(x)
    n = x.numel()
    scale[(triton.cdiv(n, 64),)](x, y, n, factor, shift=shift, SQUARE=square, num_warps=2)
    return y
"""
_ROWS = """\
@triton.jit
def rows(x_ptr, stride_x, stride_col, w_ptr, stride_w, y_ptr, stride_y, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + offs * stride_w, mask=offs < n)
    x = tl.load(x_ptr + tl.program_id(0) * stride_x + offs * stride_col, mask=offs < n)
    tl.store(y_ptr + tl.program_id(0) * stride_y + offs, x * w, mask=offs < n)


def launch(x, w=None):
    m, n = x.shape
    y = torch.empty_like(x)
    rows[(m,)](
        x,
        x.stride(0),
        x.stride(-1),
        w,
        w.stride(0),
        y,
        y.stride(0) if m > 1 else n,
        n,
        BLOCK=64,
    )
    return y
"""

OPERATOR = Operator(
    name="argument-not-forwarded",
    bug_class="host-plumbing",
    summary="A launcher passes a default, nothing, or another dim's stride to the kernel.",
    evidence="torchao #3686; DeepSpeed #2285",
    find=no_sites,
    find_in_launcher=find,
    version=2,
    applies=(
        Example(
            _SCALE,
            (
                _SCALE.replace("n, factor, shift=", "n, 1.0, shift="),
                _SCALE.replace("shift=shift", "shift=None"),
                _SCALE.replace(" SQUARE=square,", ""),
            ),
        ),
        Example(
            _ROWS,
            (
                _ROWS.replace("x.stride(0)", "x.stride(1)"),
                _ROWS.replace("x.stride(-1)", "x.stride(-2)"),
                _ROWS.replace("y.stride(0)", "y.stride(1)"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def scale(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * factor, mask=offs < n)


def launch(x, factor, block=64, out=None):
    y = torch.empty_like(x) if out is None else out
    factor = factor or 1.0
    scale[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), factor, BLOCK=2 * block)
    return y
""",
        """\
@triton.jit
def gather(x_ptr, i_ptr, y_ptr, n, stride_x, stride_i, CHECK: tl.constexpr = True):
    row = tl.program_id(0)
    i = tl.load(i_ptr + row * stride_i)
    tl.store(y_ptr + row, tl.load(x_ptr + i * stride_x))


def launch(x, i, bias=None):
    y = torch.empty(i.shape[0], dtype=x.dtype, device=x.device)
    gather[(i.shape[0],)](x, i, y, x.numel(), x.stride(0), i.stride(0), CHECK=True)
    return y
""",
    ),
)
