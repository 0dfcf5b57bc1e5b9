"""Sizes that know the kernel: what a block size makes interesting."""

from __future__ import annotations

from collections.abc import Callable, Iterable

DEFAULT_BLOCK = 32
"""Taken for a tiled dim whose block size is not known."""


def sizes_for(blocks: tuple[int, ...], limits: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Sizes that matter to kernels with these block sizes, ascending.

    {1, 2, B-1, B, B+1, 2B+1, 3B, prime, far below the next power of two}; where `limits` are
    given (a dim with a few allowed sizes), those alone.
    """
    if limits:
        return tuple(sorted(set(limits)))
    found = {1, 2}
    for block in blocks or (DEFAULT_BLOCK,):
        found |= {size_of(kind, block) for kind in SIZE_KINDS}
    return tuple(sorted(found))


def size_of(kind: str, block: int, stagger: int = 0) -> int:
    """One size by kind; `stagger` keeps the dims of a case apart where the kind allows it."""
    return max(1, SIZE_KINDS[kind](block, stagger))


def _tail(block: int, stagger: int) -> int:
    # A tail of 1, 2, ... elements, and never a whole number of blocks.
    return 2 * block + 1 + stagger % max(1, block - 1)


SIZE_KINDS: dict[str, Callable[[int, int], int]] = {
    "one": lambda block, stagger: 1,
    "two": lambda block, stagger: 2,
    "short": lambda block, stagger: block // 4 + 1,
    "below": lambda block, stagger: block - 1,
    "block": lambda block, stagger: block,
    "above": lambda block, stagger: block + 1,
    "several_tail": _tail,
    "several": lambda block, stagger: 3 * block,
    "prime": lambda block, stagger: next_prime(block + block // 2 + stagger),
}
"""Kind -> size for a block. `several_tail` has whole blocks and a tail, `several` three whole
blocks, `prime` lies between one and two blocks, `short` far below the next power of two."""


def next_prime(number: int) -> int:
    """The first prime at or above a number."""
    candidate = max(2, number)
    while any(candidate % divisor == 0 for divisor in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def distinct(sizes: Iterable[int]) -> tuple[int, ...]:
    """The sizes without repeats, in order."""
    return tuple(dict.fromkeys(sizes))
