"""Rules on how a gate is wired: what comes of exceptions, answers, lists, buffers and text.

Each gives the evidence in a sentence, or None.
"""

from __future__ import annotations

from gatecert.gates.evidence import BY_HAND
from gatecert.gates.wiring.comparisons import always_true
from gatecert.gates.wiring.facts import Facts, compared_in, compares_values, is_empty, only_reads
from gatecert.wording import count, listed, times


def swallowed_exception(facts: Facts) -> str | None:
    """Tests passed, or the gate accepted, although the entry raised; or asserting functions
    objected in tests that passed, without a warning and without a second try; or assertions
    failed on NaN in tests that passed."""
    calm = facts.passed_with_more("raises", "raised")
    if calm:
        return f"passed although the entry raised RuntimeError: {listed(calm)}"
    raised = facts.seen("raises").entry_raised
    if facts.accepted("raises") and raised:
        return f"the entry raised RuntimeError {times(raised)}, and the gate accepted it"
    for name in facts.watched:
        _, objected = facts.refusals(name)
        if objected and not facts.warned(name) and not facts.retried(name):
            return f"on {name} comparisons raised {times(objected)} inside tests that passed"
    # NaN is within no tolerance: no second, wider look can have let it pass.
    calm = facts.passed_with_more("returns_nan", "asserts_failed")
    return f"passed although assertions failed on returns_nan: {listed(calm)}" if calm else None


def zipped_lists(facts: Facts) -> str | None:
    """Lists of unequal lengths were zipped; or an output less went unnoticed because less was
    compared, by a gate that does notice exceptions and zeros."""
    runs = [("the original", facts.original), *((n, facts.seen(n)) for n in facts.fooled)]
    for name, evidence in runs:
        for one in evidence.zips:
            lengths = " and ".join(map(str, one.lengths))
            return f"{one.place} zips lists of {lengths} items on {name}, which is accepted"
    notices = facts.rejected("raises") and facts.rejected("returns_zeros")
    if facts.accepted("fewer_outputs") and notices:
        usual = compared_in(facts.original)
        now = compared_in(facts.seen("fewer_outputs"))
        if now < usual:
            return f"without the last output {now} comparisons are made in place of {usual}"
    return None


def empty_collection(facts: Facts) -> str | None:
    """A test of the original passed without the comparison that stands in its loop."""
    idle = [test.test for test in facts.original.tests if test.idle_loop and test.passed]
    return f"passed without a turn of the loop that compares: {listed(idle)}" if idle else None


def nothing_compared(facts: Facts) -> str | None:
    """Kernels ran, no two values were compared, nothing but text and empty tensors was, and zeros
    are accepted; or values were compared, and never an output with something else."""
    seen = facts.original
    full = [one for one in seen.compared if compares_values(one) and not is_empty(one)]
    if not facts.launches or seen.captured:
        return None
    if full:
        return _outputs_left_out(facts)
    if not facts.accepted("returns_zeros") or empty_collection(facts) is not None:
        return None
    launched = sum(one.times for one in facts.launches)
    ops = dict.fromkeys(op for one in seen.compared for op in one.ops)
    if any(map(is_empty, seen.compared)):
        return f"{count(launched, 'launch')}, and all that is compared is empty"
    looked = f", and what is looked at is {', '.join(ops)} of one side" if ops else ""
    return f"{count(launched, 'launch')} and no comparison of values{looked}"


def warn_only(facts: Facts) -> str | None:
    """An adversary was accepted, or got past a test, with a warning that the original does not
    bring about."""
    for name in facts.watched:
        warnings = facts.warned(name)
        if not warnings or name == "raises":
            continue
        if facts.accepted(name):
            return f"{name} is accepted with the warning {warnings[0].strip()!r}"
        warned = facts.passed_with_more(name, "warned")
        calm = [test for test in warned if test not in facts.decided]
        if calm:
            return f"on {name} tests passed and warned, {warnings[0].strip()!r}: {listed(calm)}"
    return None


def ignored_result(facts: Facts) -> str | None:
    """Comparisons that return their answer said no in tests that passed, without a warning and
    without a second try; or tests that fail are marked as expected to, or skip instead."""
    marked = facts.original.tally.xpassed if facts.original.tally is not None else 0
    if marked:
        return f"{count(marked, 'test')} marked xfail, without strict: they may fail and may pass"
    for name in facts.watched if always_true(facts) is None else ():
        returned, _ = facts.refusals(name)
        if returned and not facts.warned(name) and not facts.retried(name):
            return f"on {name} comparisons said no {times(returned)} in tests that passed"
        left = _left_out(facts, name) if facts.accepted(name) else 0
        if left > 0:
            return f"on {name} {count(left, 'test')} that otherwise pass are skipped or xfailed"
    return None


def stale_buffer(facts: Facts) -> str | None:
    """The last call's output is accepted, where zeros and fresh memory are not; or a kernel
    that writes in place is accepted without having written."""
    if not facts.rejected("returns_zeros"):
        return None
    if facts.original.entry_in_place and facts.accepted("does_nothing"):
        return "the buffer for the output holds right values before the call: writing none passes"
    if facts.retried("returns_last_output"):
        return None
    calls = facts.seen("returns_last_output").entry_calls or 0
    if facts.accepted("returns_last_output") and facts.rejected("does_nothing") and calls > 1:
        return f"the output of the call before is accepted in each of {calls} calls, zeros are not"
    return None


def freed_memory(facts: Facts) -> str | None:
    """Memory that was not written by the kernel is accepted, where zeros are not."""
    if not facts.rejected("returns_zeros") or facts.original.entry_in_place:
        return None
    if facts.accepted("does_nothing"):
        return "an output that nothing was written to is accepted, zeros are not"
    if facts.accepted("returns_freed_memory"):
        return "a block of memory that somebody else had left values in is accepted, zeros are not"
    return None


def broadcast_shape(facts: Facts) -> str | None:
    """A wrong shape, or fewer rows, are accepted by a comparison of sides whose shapes differ."""
    usual = {one.shapes for one in facts.original.compared}
    fooled = [name for name in ("wrong_shape", "fewer_outputs") if facts.accepted(name)]
    for one in (one for name in fooled for one in facts.seen(name).compared):
        if one.passed and len(set(one.shapes)) == 2 and one.shapes not in usual:
            left, right = (list(shape) for shape in one.shapes)
            how = f"{', '.join(one.ops)} by hand" if one.function == BY_HAND else one.function
            return f"a side of shape {left} passes against {right} in {how}"
    return None


def printed_text(facts: Facts) -> str | None:
    """It is text that differs where wrong code is rejected, and no values were compared, or were
    read for printing only; or zeros are accepted by a gate that reads back what was printed and
    compares no values."""
    seen = facts.original
    captured = f"printed text is read back {times(seen.captured)}"
    if any(map(compares_values, seen.compared)):
        # Numbers read out of tensors may have been for printing: then the no is over text.
        if seen.captured and all(map(only_reads, seen.compared)) and facts.objects_to_text():
            return f"{captured}, and it is text that differs where wrong code is rejected"
        return None
    if seen.captured and (facts.objects_to_text() or facts.accepted("returns_zeros")):
        return f"{captured}, and no two values are compared"
    if facts.objects_to_text():
        made = f"values are made text {times(seen.shown)}" if seen.shown else "texts differ"
        return f"{made}, and no two values are compared"
    return None


def retries(facts: Facts) -> str | None:
    """Tests were run again on wrong code, or the entry was called again after a no."""
    for name in facts.answers:
        how = facts.retried(name)
        if how:
            return f"{name}: {how}"
    reruns = facts.original.tally.reruns if facts.original.tally is not None else 0
    return f"the original: {count(reruns, 'rerun')} of failed tests" if reruns else None


def _outputs_left_out(facts: Facts) -> str | None:
    seen = facts.original
    if not seen.entry_calls or seen.entry_in_place or seen.with_outputs or facts.bypassed:
        return None
    if not facts.accepted("returns_zeros") or not facts.accepted("wrong_element"):
        return None
    if seen.between_outputs:
        compared = count(seen.between_outputs, "comparison")
        return f"{compared} of what the entry gives with what else it gives, and none with more"
    if seen.between_others and facts.accepted("returns_nan"):
        compared = count(seen.between_others, "comparison")
        return f"{compared}, and in none of them what the entry gives"
    return None


def _left_out(facts: Facts, name: str) -> int:
    before, after = facts.original.tally, facts.seen(name).tally
    if before is None or after is None or after.passed >= before.passed:
        return 0
    return after.skipped + after.xfailed - before.skipped - before.xfailed
