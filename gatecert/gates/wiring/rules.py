"""Name a gate's weaknesses from what it was seen to do: a table of rules, and nothing else.

Each rule looks at the evidence of the original's run and at the answers to the adversaries, and
says in a sentence what it saw, or nothing. It asks for something seen: that an adversary was
accepted is not enough where it could have passed for several reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from gatecert.gates.evidence import Evidence
from gatecert.gates.records import Verdict
from gatecert.gates.wiring import answers as on_answers
from gatecert.gates.wiring import comparisons as on_comparisons
from gatecert.gates.wiring import values as on_values
from gatecert.gates.wiring.facts import Facts
from gatecert.gates.wiring.weaknesses import NamedWeakness, Weakness
from gatecert.subjects import Subject

RULES: Mapping[Weakness, Callable[[Facts], str | None]] = {
    Weakness.SWALLOWED_EXCEPTION: on_answers.swallowed_exception,
    Weakness.ZIPPED_LISTS: on_answers.zipped_lists,
    Weakness.EMPTY_COLLECTION: on_answers.empty_collection,
    Weakness.NOTHING_COMPARED: on_answers.nothing_compared,
    Weakness.WARN_ONLY: on_answers.warn_only,
    Weakness.IGNORED_RESULT: on_answers.ignored_result,
    Weakness.ALWAYS_TRUE: on_comparisons.always_true,
    Weakness.MENDED_OUTPUT: on_comparisons.mended_output,
    Weakness.NAN_PASSES: on_comparisons.nan_passes,
    Weakness.ANY_FOR_ALL: on_comparisons.any_for_all,
    Weakness.PARTLY_COMPARED: on_comparisons.partly_compared,
    Weakness.STALE_BUFFER: on_answers.stale_buffer,
    Weakness.FREED_MEMORY: on_answers.freed_memory,
    Weakness.BROADCAST_SHAPE: on_answers.broadcast_shape,
    Weakness.PRINTED_TEXT: on_answers.printed_text,
    Weakness.RETRIES: on_answers.retries,
    Weakness.LOOSE_TOLERANCE: on_values.loose_tolerance,
    Weakness.GLOBAL_METRIC: on_values.global_metric,
    Weakness.ONE_SHAPE: on_values.one_shape,
    Weakness.ALIGNED_SHAPES: on_values.aligned_shapes,
    Weakness.ONE_BLOCK: on_values.one_block,
    Weakness.POSITIVE_INPUTS: on_values.positive_inputs,
    Weakness.CONTIGUOUS_INPUTS: on_values.contiguous_inputs,
    Weakness.UNTESTED_DTYPES: on_values.untested_dtypes,
}
"""What shows each weakness; the rule's docstring says when."""

_LETS_ALL_PASS = (
    Weakness.SWALLOWED_EXCEPTION,
    Weakness.NOTHING_COMPARED,
    Weakness.EMPTY_COLLECTION,
    Weakness.WARN_ONLY,
    Weakness.IGNORED_RESULT,
    Weakness.ALWAYS_TRUE,
    Weakness.PRINTED_TEXT,
)
_WRONG_VALUES = (Weakness.LOOSE_TOLERANCE, Weakness.MENDED_OUTPUT)
_LETS_PASS: Mapping[str, tuple[Weakness, ...]] = {
    "fewer_outputs": (Weakness.ZIPPED_LISTS, Weakness.BROADCAST_SHAPE),
    "wrong_shape": (Weakness.BROADCAST_SHAPE,),
    "returns_last_output": (
        *(Weakness.STALE_BUFFER, Weakness.FREED_MEMORY, Weakness.RETRIES),
        Weakness.MENDED_OUTPUT,
    ),
    "returns_freed_memory": (Weakness.FREED_MEMORY, *_WRONG_VALUES),
    "does_nothing": (Weakness.STALE_BUFFER, Weakness.FREED_MEMORY, *_WRONG_VALUES),
    "returns_zeros": _WRONG_VALUES,
    "returns_nan": (Weakness.MENDED_OUTPUT, Weakness.NAN_PASSES),
    "returns_input": _WRONG_VALUES,
    "wrong_element": (
        *(Weakness.GLOBAL_METRIC, Weakness.ANY_FOR_ALL, Weakness.PARTLY_COMPARED),
        *_WRONG_VALUES,
    ),
}
"""By which weaknesses an adversary gets past a gate, besides those that let all of them pass."""


def weaknesses(
    subject: Subject,
    original: Evidence,
    answers: Mapping[str, Verdict],
    kernels: Collection[str] = (),
) -> tuple[NamedWeakness, ...]:
    """The weaknesses that evidence shows, in the order of the table.

    `original` is what was seen while the gate accepted the original; `answers` are its verdicts
    on the adversaries by their names, with evidence; `kernels` are the subject's, as
    `module:qualname`.
    """
    facts = Facts(subject, original, answers, frozenset(kernels))
    found = ((weakness, rule(facts)) for weakness, rule in RULES.items())
    return tuple(NamedWeakness(what, said, subject.name) for what, said in found if said)


def reasons(adversary: str, named: Collection[NamedWeakness]) -> tuple[Weakness, ...]:
    """Which of the named weaknesses explain that an adversary was accepted."""
    may = (*_LETS_PASS.get(adversary, ()), *_LETS_ALL_PASS)
    has = {one.weakness for one in named}
    return tuple(weakness for weakness in may if weakness in has)
