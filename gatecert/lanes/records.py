"""Records of what a lane sees: launches and guard findings."""

from __future__ import annotations

import enum

import msgspec


class Launch(msgspec.Struct, frozen=True):
    """One launch of one kernel, as the launcher asked for it.

    `kernel` is `module:qualname`. `types` maps runtime parameters to Triton types (`*fp32`,
    `i32`, `i64`, `fp32`, `u1`, ...); `constexprs` maps the others to JSON-able values (a dtype is
    `"dtype:fp16"`, a callee `"fn:module:qualname"`, an infinity
    `"float:inf"`). `integers` are the runtime integers.
    """

    kernel: str
    grid: tuple[int, int, int]
    types: tuple[tuple[str, str], ...]
    constexprs: tuple[tuple[str, int | float | bool | str | None], ...]
    integers: tuple[tuple[str, int], ...] = ()
    num_warps: int = 4
    num_stages: int = 3
    launcher: tuple[str, int] = ("", 0)
    """File and line of the code that launched it, where that is Python's to tell."""


class LaunchTrace(msgspec.Struct, frozen=True):
    """What one launch did: names of the arguments it `read`, and those it `wrote`.

    `masked` says that some lane of some access was masked off; None: no access has a mask.
    `longest_loop` counts the turns of its longest loop over a range; None: it has no such loop, or
    constants alone hold each of them to one turn at most.
    """

    read: frozenset[str]
    wrote: frozenset[str]
    masked: bool | None
    longest_loop: int | None
    asks_which_program: bool
    """It calls `tl.program_id`."""


class FindingKind(str, enum.Enum):
    """What a guard noticed while a kernel ran."""

    LOAD_OUT_OF_BOUNDS = "load_out_of_bounds"
    """A lane read outside its buffer."""
    STORE_OUT_OF_BOUNDS = "store_out_of_bounds"
    """A lane wrote outside its buffer; the write was not done."""
    ATOMIC_OUT_OF_BOUNDS = "atomic_out_of_bounds"
    """An atomic lane touched memory outside its buffer; it was not done."""


class Finding(msgspec.Struct, frozen=True):
    """One kind of guard finding at one place, with how often it happened."""

    kind: FindingKind
    kernel: str
    argument: str
    lanes: int
    first_offset: int
    """Element offset from the start of the buffer, of the first offending lane."""


class Poison(str, enum.Enum):
    """What nobody wrote reads as under the strict policy: fresh memory, lanes that are masked off
    without `other`, lanes out of bounds. No right kernel can tell one from the other."""

    NAN = "nan"
    """NaN, and a large odd integer."""
    HIGH = "high"
    """A large number, which a maximum keeps where it drops NaN; fresh memory has both signs."""
    LOW = "low"
    """A large negative number, which a minimum keeps; fresh memory has both signs."""


class GuardPolicy(str, enum.Enum):
    """How the memory hooks treat what is wrong."""

    STRICT = "strict"
    """The oracle's: bad loads and masked-off lanes without `other` read poison, and fresh memory
    holds it; bad stores are recorded and not done."""
    LENIENT = "lenient"
    """For external gates: bad loads read finite bytes, masked-off lanes without `other` read
    zero as the stock interpreter does; bad stores are recorded and not done. Never changes a
    gate's verdict by itself."""
