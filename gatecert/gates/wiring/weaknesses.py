"""Every way in which a gate can be weak that gatecert names from evidence."""

from __future__ import annotations

import enum

import msgspec


class Weakness(str, enum.Enum):
    """Why a gate accepts what it should not: what a report says of it, and what mends it."""

    sentence: str
    remedy: str

    def __new__(cls, value: str, sentence: str, remedy: str) -> Weakness:
        """A member whose value is its name in files."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        member.remedy = remedy
        return member

    SWALLOWED_EXCEPTION = (
        "swallowed_exception",
        "The kernel or a comparison raised, and the gate went on as if it had not.",
        "Let exceptions out: no `except` around the call or the comparison.",
    )
    ZIPPED_LISTS = (
        "zipped_lists",
        "Outputs are compared pairwise, and those without a partner are dropped.",
        "Compare lengths first, or zip with strict=True.",
    )
    EMPTY_COLLECTION = (
        "empty_collection",
        "A test passed without comparing anything: what it loops over is empty.",
        "Assert that there is something to compare before the loop.",
    )
    NOTHING_COMPARED = (
        "nothing_compared",
        "The gate runs the kernel and compares no value of it with a reference.",
        "Compare the outputs with a reference.",
    )
    WARN_ONLY = (
        "warn_only",
        "A mismatch is found and only warned of.",
        "Fail where the comparison fails, in CI too.",
    )
    IGNORED_RESULT = (
        "ignored_result",
        "A comparison says no, and nothing comes of it.",
        "Assert what the comparison returns, and let no mark or skip forgive it.",
    )
    ALWAYS_TRUE = (
        "always_true",
        "An assertion is true whatever it is given: a generator, a tuple, a method not called.",
        "Assert `all(...)` of a generator, no parentheses around a condition and its message.",
    )
    MENDED_OUTPUT = (
        "mended_output",
        "Elements that are wrong are replaced or left out before the output is compared.",
        "Compare the output as it is; mask by lengths or inputs, never by what it holds.",
    )
    NAN_PASSES = (
        "nan_passes",
        "NaN is beyond no bound, and the gate asks whether an error is.",
        "Ask whether all errors are within the bound: `(error <= tol).all()`.",
    )
    ANY_FOR_ALL = (
        "any_for_all",
        "One close element is enough.",
        "Ask for `all` in the place of `any`.",
    )
    PARTLY_COMPARED = (
        "partly_compared",
        "Only a part of the output is compared.",
        "Compare every element.",
    )
    STALE_BUFFER = (
        "stale_buffer",
        "What an earlier call or the reference left in a buffer passes for this call's output.",
        "Fill output buffers with NaN before the call, and change the input between calls.",
    )
    FREED_MEMORY = (
        "freed_memory",
        "Memory that held the reference is read back as the output.",
        "Compute the reference after the kernel ran, or keep all of its intermediate values alive.",
    )
    BROADCAST_SHAPE = (
        "broadcast_shape",
        "An output of another shape passes, because the comparison broadcasts.",
        "Compare shapes first; torch.testing.assert_close does.",
    )
    PRINTED_TEXT = (
        "printed_text",
        "What is compared is printed text, not values.",
        "Compare tensors; text has few digits, and may be empty on both sides.",
    )
    RETRIES = (
        "retries",
        "A failing test is run again until it passes.",
        "Fix seeds, and let one failure decide.",
    )
    LOOSE_TOLERANCE = (
        "loose_tolerance",
        "The tolerance is far wider than what correct code needs.",
        "Derive it from the dtype and the reduction length, against an fp64 reference.",
    )
    GLOBAL_METRIC = (
        "global_metric",
        "One number for a whole tensor decides: a few wrong elements do not move it.",
        "Compare element by element, beside it or in its place.",
    )
    ONE_SHAPE = (
        "one_shape",
        "Every launch of a kernel has the same shapes.",
        "Add shapes: at, below and above a block, and several blocks.",
    )
    ALIGNED_SHAPES = (
        "aligned_shapes",
        "Every size is a whole number of blocks: no tail is ever masked.",
        "Add sizes that are no multiple of the block.",
    )
    ONE_BLOCK = (
        "one_block",
        "No dimension is larger than one block: nothing is ever carried on to a second one.",
        "Add a size of three blocks or more.",
    )
    POSITIVE_INPUTS = (
        "positive_inputs",
        "No input is negative.",
        "Draw from a distribution with both signs, such as torch.randn.",
    )
    CONTIGUOUS_INPUTS = (
        "contiguous_inputs",
        "Every input is contiguous, although the subject declares other layouts.",
        "Pass slices and transposes as well, or declare contiguous inputs only.",
    )
    UNTESTED_DTYPES = (
        "untested_dtypes",
        "A declared dtype never reaches the kernel.",
        "Run the tests in every dtype that is declared, or declare fewer.",
    )


class NamedWeakness(msgspec.Struct, frozen=True):
    """A weakness of a gate on one subject, with the evidence that shows it, in a sentence."""

    weakness: Weakness
    evidence: str
    subject: str = ""
