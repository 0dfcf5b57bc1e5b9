"""The calls of the entry that a gate makes on the original."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from gatecert.diagnosis.calls import CallCapture, CallRecord, Cut, Kept, NotKept, read_calls
from gatecert.diagnosis.records import Captured
from gatecert.encoding import decode, encode
from gatecert.gates.base import PreparedGate
from gatecert.gates.command.elsewhere import GateElsewhere
from gatecert.gates.command.run import capturing
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.lanes import interpreter
from gatecert.mutants.entry_calls import entry_observed, show_entry
from gatecert.mutants.records import original
from gatecert.sandbox.child import ChildEnd, run_in_child
from gatecert.subjects import Subject, load_entry


def capture(
    prepared: PreparedGate,
    subject: Subject,
    folder: str | None,
    kernels: Sequence[str],
    *,
    timeout_s: float,
    memory_bytes: int,
) -> tuple[Verdict, Captured, tuple[Kept, ...]]:
    """Run the gate once on the original, in `folder` where it is the user's, and keep the calls
    that it makes, and its own launches of `kernels`."""
    first = original(subject.name)
    with tempfile.TemporaryDirectory() as into:

        def work() -> bytes:
            if isinstance(prepared, GateElsewhere):
                with capturing(into, kernels):
                    return encode(prepared.judge(first, stop_at_first=False))
            if folder is not None:
                os.chdir(folder)
            seen = CallCapture(f"{into}/own.calls", kernels)
            with entry_observed(seen, all_threads=True), interpreter.arguments_shown(seen):
                if folder is None:  # what is the user's is watched itself, as it is imported
                    load_entry(subject)
                    module, _, path = subject.entry.partition(":")
                    show_entry(module, path)
                return encode(prepared.judge(first, stop_at_first=False))

        result = run_in_child(work, timeout_s=timeout_s, memory_bytes=memory_bytes)
        files = sorted(Path(into).glob("*.calls"))
        records = [record for file in files for record in read_calls(file)]
    if result.end is ChildEnd.ANSWERED:
        verdict = decode(result.answer, Verdict)
    else:
        verdict = Verdict(first.id, "", GateOutcome.ERROR, detail=result.last_words)
    kept = tuple(record for record in records if isinstance(record, Kept))
    return verdict, captured_of(records, verdict), kept


def captured_of(records: Iterable[CallRecord], verdict: Verdict) -> Captured:
    """What was kept of all, and why nothing was."""
    records = tuple(records)
    kept = sum(isinstance(record, Kept) for record in records)
    refused = [record.why for record in records if isinstance(record, NotKept)]
    why = ""
    if not kept and refused:
        why = f"its calls have an argument that cannot be kept ({refused[0]})"
    elif not kept and verdict.outcome is GateOutcome.ERROR:
        why = f"the gate gave no verdict on the original ({verdict.detail})"
    elif not kept and verdict.evidence is None:
        why = "none of its calls of the entry was seen"
    return Captured(
        calls=sum(not _kernel(record) for record in records),
        launches=sum(bool(_kernel(record)) for record in records),
        kept=kept,
        cut=sum(isinstance(record, Cut | NotKept) for record in records),
        why_none=why,
    )


def _kernel(record: CallRecord) -> str:
    return record.kernel if isinstance(record, Kept | NotKept) else ""
