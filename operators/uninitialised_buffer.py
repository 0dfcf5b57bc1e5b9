"""Hand a kernel memory that nobody has set: `zeros` becomes `empty`, `zero_()` goes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.allocation import Initialisation, initialisations
from gatecert.operators.facts.buffers import BufferUse, buffer_use
from gatecert.operators.facts.launcher import Launch, LauncherSyntax, bare_text
from gatecert.operators.records import (
    Example,
    ObservableBy,
    Operator,
    Reveal,
    Site,
    no_sites,
)


def find(launcher: LauncherSyntax) -> Iterator[Site]:
    """One site per zeroed or filled tensor that a kernel gets.

    What the memory held before shows if the first kernel that gets it reads it, or stores to
    only some of it; a kernel that stores to all of it hides the bug.
    """
    for initialisation in initialisations(launcher):
        uses = [
            (launch, parameter)
            for launch in launcher.launches
            for parameter, arg in launch.arguments.items()
            if _is_handed(launcher, initialisation, arg.value)
        ]
        if not uses:
            continue
        reveal = _reveal(launcher, initialisation, uses)
        launch, parameter = uses[0]
        yield Site(
            edits=initialisation.edits,
            line=launcher.module.line(initialisation.node),
            detail=f"{parameter} of {launch.kernel} is not initialised",
            observable_by=(ObservableBy.VALUES,) if reveal else (),
            reveal=reveal,
        )


def _is_handed(
    launcher: LauncherSyntax, initialisation: Initialisation, argument: cst.BaseExpression
) -> bool:
    reached = launcher.tensors(argument)
    if initialisation.node in reached:
        return True
    tensor = initialisation.tensor
    return isinstance(tensor, cst.Name) and any(
        isinstance(node, cst.Name) and node.value == tensor.value for node in reached
    )


def _reveal(
    launcher: LauncherSyntax, initialisation: Initialisation, uses: list[tuple[Launch, str]]
) -> tuple[Reveal, ...]:
    """Conditions under which the old content shows; () if it never does."""
    around = set(launcher.conditions(initialisation.node))
    for launch, parameter in uses:
        reveal = _reveal_of(launcher, initialisation, launch, parameter)
        if reveal:
            return reveal
        if set(launcher.conditions(launch.call)) <= around:
            break  # all later launches see what this one stored
    return ()


def _reveal_of(
    launcher: LauncherSyntax, initialisation: Initialisation, launch: Launch, parameter: str
) -> tuple[Reveal, ...]:
    if launch.syntax is None or launch.parameter(parameter) is None:
        return (Reveal.ANY,)
    buffer = buffer_use(launch.syntax, parameter)
    if buffer.use is BufferUse.UNTOUCHED:
        return ()
    if buffer.use is BufferUse.READ:
        return (Reveal.ANY,)
    if buffer.use is BufferUse.SPARED:
        return (Reveal.MASKED_ROWS,)
    reached = launcher.tensors(launch.arguments[parameter].value)
    if any(isinstance(node, cst.Subscript) for node in reached):
        return (Reveal.ANY,)  # a part of it is handed over
    grid = _grid_sizes(launcher, launch.grid)
    for axis in buffer.program_axes:
        texts = grid[axis] if 0 <= axis < len(grid) else ()
        if not any(set(text.split("*")) <= initialisation.dims for text in texts):
            return (Reveal.SEVERAL_BLOCKS,)
    return ()


def _grid_sizes(launcher: LauncherSyntax, grid: cst.BaseExpression) -> list[set[str]]:
    """The grid's sizes, each as all the texts that the launcher has for it."""
    while True:
        if isinstance(grid, cst.Lambda):
            grid = grid.body
        elif isinstance(grid, cst.Name) and len(launcher.values(grid.value)) == 1:
            (grid,) = launcher.values(grid.value)
        else:
            break
    if not isinstance(grid, cst.Tuple | cst.List):
        return []
    found = []
    for element in grid.elements:
        texts = {bare_text(launcher.module, element.value)}
        if isinstance(element.value, cst.Name):
            values = launcher.values(element.value.value)
            texts |= {bare_text(launcher.module, v) for v in values[:1] if len(values) == 1}
        found.append(texts)
    return found


_SUMS = """\
@triton.jit
def column_sums(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + offs, mask=offs < n, other=0.0)
    tl.atomic_add(out_ptr + offs, x, mask=offs < n)


def launch(x):
    m, n = x.shape
    out = torch.zeros(n, dtype=torch.float32, device=x.device)
    column_sums[(m,)](x, out, m, n, BLOCK=triton.next_power_of_2(n))
    return out
"""
_LOSSES = """\
@triton.jit
def losses(x_ptr, y_ptr, loss_ptr, best_ptr, n, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(y_ptr + row)
    tl.store(best_ptr + row, label)
    if label == ignored:
        return
    tl.store(loss_ptr + row, -tl.load(x_ptr + row * n + label))


def launch(x, y, losses_only=False):
    rows = y.numel()
    loss = x.new_full((rows,), 0.0)
    best = None if losses_only else torch.empty_like(y)
    best.fill_(-1)
    grid = (rows,)
    losses[grid](x, y, loss, best_ptr=best.view(-1), n=x.shape[1], ignored=-100, BLOCK=64)
    return loss, best
"""

OPERATOR = Operator(
    name="uninitialised-buffer",
    bug_class="uninit-buffer",
    summary="A buffer that a launcher sets to zero, or fills, reaches the kernel as it was.",
    evidence="flash-linear-attention #892, #967; FlagGems #1240",
    find=no_sites,
    find_in_launcher=find,
    version=2,
    applies=(
        Example(_SUMS, (_SUMS.replace("torch.zeros", "torch.empty"),)),
        Example(
            _LOSSES,
            (
                _LOSSES.replace("new_full((rows,), 0.0)", "new_empty((rows,))"),
                _LOSSES.replace("best.fill_(-1)", "pass"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, 1.0, mask=offs < n)


def launch(x):
    out = torch.empty_like(x)
    fill[(triton.cdiv(x.numel(), 64),)](out, x.numel(), BLOCK=64)
    return out, torch.zeros_like(x)
""",
        """\
@triton.jit
def shift(x_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x + by, mask=offs < n)


def launch(x):
    out = torch.empty_like(x)
    by = torch.zeros(1).item()
    shift[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), by, BLOCK=64)
    return out
""",
    ),
)
