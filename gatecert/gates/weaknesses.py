"""Every way in which a gate can be weak that gatecert names from evidence."""

from __future__ import annotations

import enum

import msgspec


class Weakness(str, enum.Enum):
    """Why a gate accepts what it should not; the sentence is what a report says."""

    SWALLOWED_EXCEPTION = "swallowed_exception"
    """The kernel raised and the gate went on as if it had not."""
    ZIPPED_LISTS = "zipped_lists"
    """Outputs are compared pairwise and missing ones are dropped: too few outputs pass."""
    EMPTY_COLLECTION = "empty_collection"
    """A test passed without comparing anything: what it loops over is empty."""
    NOTHING_COMPARED = "nothing_compared"
    """The gate runs the kernel and never compares a value."""
    WARN_ONLY = "warn_only"
    """A mismatch is found and only warned of."""
    IGNORED_RESULT = "ignored_result"
    """A comparison says no and nobody looks at its answer."""
    STALE_BUFFER = "stale_buffer"
    """The output of an earlier call passes for this one's."""
    FREED_MEMORY = "freed_memory"
    """Memory that held the reference is read back as the output."""
    BROADCAST_SHAPE = "broadcast_shape"
    """An output of another shape passes, because the comparison broadcasts."""
    PRINTED_TEXT = "printed_text"
    """What is compared is printed text, not values."""
    RETRIES = "retries"
    """A failing test is run again until it passes."""
    LOOSE_TOLERANCE = "loose_tolerance"
    """The tolerance is far wider than what correct code needs."""
    GLOBAL_METRIC = "global_metric"
    """One number for a whole tensor decides: a few wrong elements do not move it."""
    ONE_SHAPE = "one_shape"
    """Every launch of a kernel has the same shapes."""
    ALIGNED_SHAPES = "aligned_shapes"
    """Every size is a whole number of blocks: no tail is ever masked."""
    ONE_BLOCK = "one_block"
    """No dimension is larger than one block: no loop or carried state is ever exercised."""
    POSITIVE_INPUTS = "positive_inputs"
    """No input is negative."""
    CONTIGUOUS_INPUTS = "contiguous_inputs"
    """Every input is contiguous, although the subject declares other layouts."""
    UNTESTED_DTYPES = "untested_dtypes"
    """A declared dtype never reaches the kernel."""


class NamedWeakness(msgspec.Struct, frozen=True):
    """A weakness with the evidence that shows it, in a sentence."""

    weakness: Weakness
    evidence: str
