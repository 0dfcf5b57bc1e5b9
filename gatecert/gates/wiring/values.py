"""Rules on what a gate compares and what it is given.

Each gives the evidence in a sentence, or None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from gatecert.gates.evidence import Compared, LaunchInputs
from gatecert.gates.watching.functions import ARRAYS
from gatecert.gates.wiring.comparisons import any_for_all
from gatecert.gates.wiring.facts import Facts, compares_values, is_elementwise, is_share, is_whole
from gatecert.wording import count, listed

WRONG_BY = 0.2
"""A tolerance is loose where a typical element may be wrong by this share of itself: more than
the coarsest format in use, bfloat16, needs by far (a rounding is 0.4%)."""
USED = 1 / 3
"""... unless correct code needs this much of the allowance."""
OF_DEFAULT = 30.0
"""Or where it allows this many times what `torch.testing.assert_close` does by default, in
formats of 32 bits and more; atol = rtol = 1e-4 in float32, which is common, is 10 to 15 times."""
USED_OF_MANY = 1 / 30
"""... unless correct code needs this much of the allowance."""
_EXACT = frozenset(
    (
        *("torch.equal", "numpy.array_equal", "numpy.array_equiv"),
        *("numpy.testing.assert_array_equal", "numpy.testing.assert_equal"),
    )
)
_KEEP_CONTIGUOUS = frozenset(("contiguous", "offset_base"))
_MOST_KINDS = 3

_Shapes: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
_Blocks: TypeAlias = tuple[tuple[str, int], ...]
_Kind: TypeAlias = tuple[str, _Shapes, _Blocks]


def loose_tolerance(facts: Facts) -> str | None:
    """Most comparisons of a dtype have a tolerance far wider than what correct code used of it.

    Equality is a comparison too; one of single numbers counts only where nothing else does.
    """
    by_dtype: dict[str, list[Compared]] = {}
    for one in facts.original.compared:
        if one.passed and (one.wrong_by is not None or one.function in _EXACT):
            by_dtype.setdefault(one.dtypes[0] if one.dtypes else "", []).append(one)
    for dtype, compared in by_dtype.items():
        measured = [
            one for one in compared if any(math.prod(s) > 1 for s in one.shapes)
        ] or compared
        loose = [one for one in measured if _is_loose(one)]
        found, total = (sum(one.times for one in some) for some in (loose, measured))
        if found * 2 > total:
            worst = max(loose, key=lambda one: one.wrong_by or 0.0)
            used = ""
            if worst.used is not None:
                used = f"; correct code needs {share(worst.used, 'that')}"
            more = f", {worst.of_default:.0f} times the default" if worst.of_default else ""
            return (
                f"{worst.function} with {_tolerance(worst)} lets a typical {dtype} element be "
                f"wrong by {share(worst.wrong_by or 0.0, 'itself')}{more}{used}, in "
                f"{found} of {count(total, 'comparison')}"
            )
    return None


def global_metric(facts: Facts) -> str | None:
    """One wrong element is accepted, and what was compared is a number for the whole tensor, or
    the share of elements that are close; or no comparison looks at anything else."""
    seen = facts.seen("wrong_element")
    silently = facts.accepted("wrong_element") and not facts.warned("wrong_element")
    if silently and (not facts.accepted("returns_zeros") or facts.warned("returns_zeros")):
        told = next((one for one in seen.compared if one.function in ARRAYS), None)
        if told is not None and not told.passed and any_for_all(facts) is None:
            return f"an element that {told.function} finds wrong is accepted: some may be"
        whole = [one for one in seen.compared if is_whole(one) or is_share(one)]
        if whole and not any(map(is_elementwise, seen.compared)):
            return f"one wrong element passes; what is compared is {_numbers(whole)} of tensors"
    every = [
        one for run in (facts.original, *map(facts.seen, facts.answers)) for one in run.compared
    ]
    compared = [one for one in every if compares_values(one) and one.ops]
    if compared and all(map(is_whole, compared)) and not any(map(is_elementwise, every)):
        return f"all that is compared is {_numbers(compared)} of tensors"
    return None


def one_shape(facts: Facts) -> str | None:
    """Each of the subject's kernels was launched with one set of shapes, and always to the same
    extent of its tensors."""
    shapes: dict[str, set[object]] = {}
    for one in facts.launches:
        shapes.setdefault(one.kernel, set()).add(one.shapes)
    if not shapes or any(len(found) > 1 or () in found for found in shapes.values()):
        return None
    if not shapes.keys().isdisjoint(facts.original.resized):
        return None
    kinds = _kinds(facts.launches)
    if len(kinds) > 1:
        return f"{_launched(facts.launches)}, one shape for each kernel"
    return f"{_like(*kinds[0])}: {_counted(facts.launches)}, one shape"


def aligned_shapes(facts: Facts) -> str | None:
    """Kernels have masks, and no lane was ever masked off."""
    masked = [one.masked for one in facts.launches if one.masked is not None]
    if not masked or any(masked):
        return None
    whole = [one for one in facts.launches if one.masked is not None]
    return f"no lane is ever masked off: {_launched(whole)}"


def one_block(facts: Facts) -> str | None:
    """No loop of a kernel takes a second turn; without loops, no launch has a second program."""
    loops = [one for one in facts.launches if one.longest_loop is not None]
    if loops:
        if any((one.longest_loop or 0) > 1 for one in loops):
            return None
        return f"no loop of a kernel takes a second turn: {_launched(loops)}"
    grids = [one for one in facts.launches if one.programs is not None]
    if not grids or any((one.programs or 0) > 1 for one in grids):
        return None
    return f"no launch has a second program: {_launched(grids)}"


def positive_inputs(facts: Facts) -> str | None:
    """No floating-point input was negative, of any call or, where it writes in place or tests
    reach kernels past it, launch."""
    given = facts.original.entry_inputs
    if not given or facts.original.entry_in_place or facts.bypassed:
        given = facts.launches
    known = [one for one in given if one.negative is not None]
    if not known or any(one.negative for one in known):
        return None
    return f"no element of an input is below zero in {_counted(known, _what(facts, given))}"


def contiguous_inputs(facts: Facts) -> str | None:
    """The subject declares layouts that are not contiguous, and every call's inputs are."""
    declared = [layout for layout in facts.subject.layouts if layout not in _KEEP_CONTIGUOUS]
    given = facts.original.entry_inputs
    if not declared or not given or facts.bypassed or not all(one.contiguous for one in given):
        return None
    return f"{listed(declared)} declared; inputs are contiguous in {_counted(given, 'call')}"


def untested_dtypes(facts: Facts) -> str | None:
    """A declared dtype was neither passed to the entry nor to a kernel."""
    given = (*facts.original.entry_inputs, *facts.launches)
    seen = {dtype for one in given for dtype in one.dtypes}
    missing = [dtype for dtype in facts.subject.dtypes if dtype not in seen]
    if not given or not missing or facts.bypassed:
        return None
    used = [dtype for dtype in facts.subject.dtypes if dtype in seen]
    return f"{listed(missing)} declared and never passed; passed: {listed(used) or 'none of them'}"


def share(value: float, of: str) -> str:
    """`0.02% of it`; `31% of it`; `19 times it`."""
    if value >= 2:
        return f"{value:.0f} times {of}"
    return f"{100 * value:.2g}% of {of}" if 0 < value < 0.1 else f"{100 * value:.0f}% of {of}"


def _is_loose(one: Compared) -> bool:
    far = (one.wrong_by or 0.0) >= WRONG_BY and (one.used or 0.0) <= USED
    many = (one.of_default or 0.0) >= OF_DEFAULT and (one.used or 0.0) <= USED_OF_MANY
    return far or many


def _tolerance(one: Compared) -> str:
    known = (("atol", one.atol), ("rtol", one.rtol))
    return ", ".join(f"{name} {value:g}" for name, value in known if value is not None)


def _numbers(compared: Iterable[Compared]) -> str:
    return "; ".join(dict.fromkeys(", ".join(one.ops) for one in compared))


def _launched(launches: Iterable[LaunchInputs]) -> str:
    """`k has x [2, 8] in 3 launches`; of launches that differ, those made most often."""
    launches = tuple(launches)
    kinds = _kinds(launches)
    if len(kinds) == 1:
        return f"{_like(*kinds[0])} in {_counted(launches)}"
    shown = "; ".join(_like(*kind) for kind in kinds[:_MOST_KINDS])
    more = f"; and {len(kinds) - _MOST_KINDS} more" if len(kinds) > _MOST_KINDS else ""
    return f"{_counted(launches)} of {len(kinds)} kinds ({shown}{more})"


def _kinds(launches: Iterable[LaunchInputs]) -> list[_Kind]:
    """Launches by kernel, shapes and blocks, the one made most often first."""
    found: Counter[_Kind] = Counter()
    for one in launches:
        found[one.kernel, one.shapes, one.blocks] += one.times
    return [kind for kind, _ in found.most_common()]


def _like(kernel: str, shapes: _Shapes, blocks: _Blocks) -> str:
    named = ", ".join(f"{name} {list(shape)}" for name, shape in shapes)
    sizes = "".join(f", {name} = {value}" for name, value in blocks)
    return f"{kernel.partition(':')[2]} has {named}{sizes}"


def _counted(launches: Iterable[LaunchInputs], what: str = "launch") -> str:
    return count(sum(one.times for one in launches), what)


def _what(facts: Facts, given: Iterable[LaunchInputs]) -> str:
    return "call" if given is facts.original.entry_inputs else "launch"
