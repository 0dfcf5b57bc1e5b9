"""What can be measured of the survivor situations, without any classifier.

    python -m tests.survivor_facts [--sample 200] [ID ...]

prints one line of JSON per situation. Every gate runs once on the originals here; each mutant has
a forked child. Values are those of a plain run: programs in order, bad loads lenient.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import random
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import torch

from gatecert.config import Config
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.formats import raw_bytes
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.layouts import place, placement_of
from gatecert.oracle.operations import resolve_operation
from gatecert.oracle.schema import Operation
from gatecert.sandbox.child import ChildEnd, run_in_child
from gatecert.subjects import Subject
from tests.survivor_gates import (
    Bench,
    Call,
    Tensors,
    copied,
    entries_of,
    hear,
    load,
    parts_of,
    results_of,
    set_up,
)
from tests.survivors import Facts, Situation, WhySurvived, mutant, situations

NOISE_FACTOR = 8.0
"""A difference counts where it is so many times the original's own error, or its rounding."""
SAMPLE = 12
"""Random cases per situation whose claim is about all inputs, where nothing else is asked for."""
ORDERS = (
    interpreter.ProgramOrder.REVERSED,
    interpreter.ProgramOrder.INTERLEAVED,
    interpreter.ProgramOrder.INTERLEAVED_LATE,
)
_SIZES = {"B": (1, 2, 3, 17), "H": (1, 2), "G": (1, 2), "V": (5, 17), "S": (1, 3, 17, 33)}
_OTHER_SIZES = (1, 2, 3, 15, 16, 17, 31, 32, 33, 40)
_FOR_ALL_INPUTS = {WhySurvived.UNOBSERVED, WhySurvived.NO_WITNESS}


def facts_of(bench: Bench, situation: Situation, folder: Path, sample: int) -> Facts:
    """Measure one situation. Call it in a child: a mutant may do anything to its process."""
    subject = bench.subjects[situation.subject]
    module, _, entry = subject.entry.partition(":")
    right = getattr(sys.modules[module], entry).__wrapped__
    wanted, before = bench.relevant(situation.gate, subject, module)

    path = folder / Path(situation.file).name
    path.write_text(mutant(situation), encoding="utf-8")
    wrong_module = load(module, path, entries_of(bench, module), bench.calls)
    wrong = getattr(wrong_module, entry).__wrapped__
    parts = [p for p in parts_of(bench.config, situation.gate, subject) if p.name in wanted]
    with _lines_run(str(path)) as lines:
        after = hear(parts, bench.calls)

    operation = resolve_operation(subject.operation or "")
    old = [call for name, call in before.calls if name == entry]
    new = [call for name, call in after.calls if name == entry]
    pairs = list(zip(old, new, strict=False))  # a gate that says no may call less often
    facts = Facts(
        id=situation.id,
        accepts_original=before.accepted,
        accepts_mutant=after.accepted,
        calls=len(new),
        reached=situation.line in lines,
        same_inputs_on_gate=len(old) == len(new) and all(_same_call(*pair) for pair in pairs),
        same_bits_on_gate=all(_same_bits(one.results, two.results) for one, two in pairs),
        beyond_noise_on_gate=any(
            _beyond_noise(one.results, two.results, _reference(operation, one))
            for one, two in pairs
        ),
    )
    if WhySurvived.UNOBSERVED in situation.reasons:
        seen = (_seen_by(call, wrong, _reference(operation, call)) for call in old)
        facts = msgspec.structs.replace(facts, seen_on_gate=tuple(sorted(set().union(*seen))))
    if situation.witness:
        facts = _on_witness(bench, situation, facts, operation, right, wrong)
    if not _FOR_ALL_INPUTS.isdisjoint(situation.reasons):
        rng = random.Random(zlib.crc32(situation.id.encode()))
        cases = [_random_case(rng, subject, operation) for _ in range(sample)]
        differ = [case.id for case in cases if not _agree(operation, case, right, wrong)]
        facts = msgspec.structs.replace(facts, sampled=sample, sampled_differ=tuple(differ))
    return facts


@contextlib.contextmanager
def _lines_run(path: str) -> Iterator[set[int]]:
    """The numbers of the lines of one file that run inside."""
    lines: set[int] = set()

    def inside(frame: FrameType, event: str, arg: Any) -> Any:
        lines.add(frame.f_lineno)
        return inside

    def enters(frame: FrameType, event: str, arg: Any) -> Any:
        return inside if frame.f_code.co_filename == path else None

    sys.settrace(enters)
    try:
        yield lines
    finally:
        sys.settrace(None)


def _on_witness(
    bench: Bench,
    situation: Situation,
    facts: Facts,
    operation: Operation,
    right: Callable[..., Any],
    wrong: Callable[..., Any],
) -> Facts:
    case = parse_case(situation.witness)
    call = Call(make_inputs(operation, case).args, {}, ())
    reference = _reference(operation, call)
    good, bad = _plain(operation, case, right), _plain(operation, case, wrong)
    close = _comparator(bench.config, situation.gate)
    accepts = None
    if close is not None:
        accepts = all(close(one, other) for one, other in zip(bad, reference, strict=True))
        if not all(close(one, other) for one, other in zip(good, reference, strict=True)):
            raise AssertionError(f"{situation.id}: the gate rejects the original on the witness")
    return msgspec.structs.replace(
        facts,
        same_bits_on_witness=_same_bits(good, bad),
        beyond_noise_on_witness=_beyond_noise(good, bad, reference),
        comparator_accepts=accepts,
        seen_by=_seen_by(call, wrong, reference),
        original_seen_by=_seen_by(call, right, reference),
    )


def _plain(operation: Operation, case: Case, entry: Callable[..., Any]) -> Tensors:
    call = Call(make_inputs(operation, case).args, {}, ())
    return _called(call, entry, GuardPolicy.LENIENT)


def _comparator(config: Config, gate: str) -> Callable[[Any, Any], bool] | None:
    table = config.gates[gate]
    if table.kind == "pytest":
        return None
    name = (table.callable.partition(":")[0] or table.command[1]).removesuffix(".py")
    close: Callable[[Any, Any], bool] = importlib.import_module(name).close
    return close


def _seen_by(call: Call, entry: Callable[..., Any], reference: Tensors) -> tuple[str, ...]:
    """The guards that see something where an entry is called in this way."""
    seen = []
    handed = _handed(call)
    with interpreter.guarded(GuardPolicy.LENIENT) as log, interpreter.repeatable_memory():
        plain = tuple(map(copied, results_of(entry(*handed.args, **handed.kwargs))))
    if log.findings():
        seen.append("bounds")
    for order in ORDERS:
        if _beyond_noise(plain, _called(call, entry, GuardPolicy.LENIENT, order), reference):
            seen.append("race")
            break
    # What a bad load reads is poisoned too.
    strict = None if log.findings() else _called(call, entry, GuardPolicy.STRICT)
    if strict is not None and _beyond_noise(plain, strict, reference):
        seen.append("poison")
    if not _same_call(call, handed):
        seen.append("inputs")
    return tuple(seen)


def _handed(call: Call) -> Call:
    """The call's arguments for a kernel to use up, each where it lies in its memory."""
    return Call(
        tuple(place(a, placement_of(a)) if isinstance(a, torch.Tensor) else a for a in call.args),
        {name: copied(arg) for name, arg in call.kwargs.items()},
        (),
    )


def _called(
    call: Call,
    entry: Callable[..., Any],
    policy: GuardPolicy,
    order: interpreter.ProgramOrder = interpreter.ProgramOrder.FORWARD,
) -> Tensors:
    handed = _handed(call)
    with (
        interpreter.guarded(policy),
        interpreter.repeatable_memory(),
        interpreter.scheduled(order),
    ):
        return results_of(entry(*handed.args, **handed.kwargs))


def _agree(
    operation: Operation, case: Case, right: Callable[..., Any], wrong: Callable[..., Any]
) -> bool:
    return _same_bits(_plain(operation, case, right), _plain(operation, case, wrong))


def _random_case(rng: random.Random, subject: Subject, operation: Operation) -> Case:
    """A case of the subject's declared domain: any dtype, layout, recipe and scalars."""
    dims = {}
    for dim in operation.dims:
        choice = subject.dims.get(dim) or _SIZES.get(dim) or _OTHER_SIZES
        dims[dim] = rng.choice(choice)
    scalars = []
    for spec in operation.scalars:
        low, high = spec.scalar.low, spec.scalar.high
        if spec.scalar.integer:
            value = float(rng.randint(int(low), int(high)))
        elif spec.scalar.logarithmic:
            value = low * (high / low) ** rng.random()
        else:
            value = rng.uniform(low, high)
        scalars.append((spec.name, value))
    return Case(
        operation.name,
        tuple(dims.items()),
        rng.choice(subject.dtypes),
        rng.choice(subject.layouts),
        rng.choice(operation.recipes),
        tuple(scalars),
        seed=rng.randrange(1000),
        absent=tuple(name for name in operation.optional if rng.random() < 0.5),
    )


def _reference(operation: Operation, call: Call) -> Tensors:
    """The operation's reference on a call's arguments, in float64."""
    scalars = [spec.name for spec in operation.inputs][len(call.args) :]
    defaults = {spec.name: spec.default for spec in operation.scalars}
    args = [*call.args, *(call.kwargs.get(name, defaults.get(name)) for name in scalars)]
    exact = [arg.double() if _is_float(arg) else arg for arg in args]
    return results_of(operation.call(operation.reference, exact))


def _is_float(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor) and thing.is_floating_point()


def _same_call(one: Call, other: Call) -> bool:
    def same(a: Any, b: Any) -> bool:
        both = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return _same_bits((a,), (b,)) if both else bool(a == b)

    return (
        len(one.args) == len(other.args)
        and all(map(same, one.args, other.args))
        and one.kwargs.keys() == other.kwargs.keys()
        and all(same(one.kwargs[name], other.kwargs[name]) for name in one.kwargs)
    )


def _same_bits(one: Tensors, other: Tensors) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and a.dtype == b.dtype and (raw_bytes(a) == raw_bytes(b)).all()
        for a, b in zip(one, other, strict=True)
    )


def _beyond_noise(one: Tensors, other: Tensors, reference: Tensors) -> bool:
    """Whether some result differs by more than `NOISE_FACTOR` times what `one` itself errs."""
    for a, b, exact in zip(one, other, reference, strict=True):
        if a.shape != b.shape or not torch.equal(a.isnan(), b.isnan()):
            return True
        a, b, exact = (t.double().nan_to_num(0.0, 1e300, -1e300) for t in (a, b, exact))
        if not a.numel():
            continue
        own = max(float((a - exact).abs().max()), 2.0**-24 * float(exact.abs().max()))
        if float((a - b).abs().max()) > NOISE_FACTOR * own:
            return True
    return False


def measure(wanted: list[str], sample: int) -> Iterator[Facts]:
    """The facts of the wanted situations, of all where none is named.

    Raises:
        RuntimeError: a child ended without an answer.
    """
    bench = set_up()
    chosen = [s for s in situations() if not wanted or s.id in wanted]
    for situation in chosen:
        bench.listen(situation.gate, bench.subjects[situation.subject])
    with tempfile.TemporaryDirectory() as folder:
        for situation in chosen:
            work = functools.partial(facts_of, bench, situation, Path(folder), sample)
            result = run_in_child(lambda work=work: msgspec.json.encode(work()), timeout_s=300)
            if result.end is not ChildEnd.ANSWERED:
                raise RuntimeError(f"{situation.id}: {result.end.value}\n{result.log}")
            yield msgspec.json.decode(result.answer, type=Facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    options = parser.parse_args()
    for facts in measure(options.ids, options.sample):
        print(msgspec.json.encode(facts).decode(), flush=True)


if __name__ == "__main__":
    main()
