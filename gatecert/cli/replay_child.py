"""The process that `gatecert replay` runs a case in: request on stdin, answer on stdout."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gatecert.cli.replay import ReplayAnswer, ReplayRequest
from gatecert.errors import EnvironmentFailure, ExitCode, GatecertError, described

if TYPE_CHECKING:
    import torch

    from gatecert.mutants.records import Candidate
    from gatecert.oracle.case import Case
    from gatecert.oracle.operations import Operation
    from gatecert.subjects import Subject

Request = TypeVar("Request", bound=ReplayRequest)


def main() -> int:
    """Run one request; an error is the last line of stderr and the exit code."""
    return serve(ReplayRequest, _replay)


def serve(kind: type[Request], work: Callable[[Request], msgspec.Struct]) -> int:
    """Read a request, do the work, write its answer as the last line."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=kind)
    sys.path[:0] = [path for path in request.subject.import_paths if path not in sys.path]
    try:
        answer = work(request)
    except GatecertError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return int(error.exit_code)
    except Exception as error:
        print(f"case {request.case!r} could not be run: {described(error)}", file=sys.stderr)
        return int(ExitCode.INTERNAL)
    print(msgspec.json.encode(answer).decode(), flush=True)
    return 0


def _replay(request: ReplayRequest) -> ReplayAnswer:
    operation = operation_of(request)
    case, held = case_of(request)
    return judge_case(operation, case, request.subject, request.candidate, held, request.save)


def operation_of(request: ReplayRequest) -> Operation:
    """The subject's operation; the code under test that its module brought in is forgotten."""
    from gatecert.lanes import interpreter

    interpreter.activate()
    import gatecert.gates.oracle  # noqa: F401
    from gatecert.oracle.operations import resolve_operation
    from gatecert.sandbox.imports import forget_user_modules

    before = set(sys.modules)
    operation = resolve_operation(request.subject.operation or "")
    forget_user_modules(before, request.candidate.files)
    return operation


def case_of(request: ReplayRequest) -> tuple[Case, Mapping[str, torch.Tensor]]:
    """The case of a request, and the tensors of its snapshot."""
    from gatecert.oracle.case import parse_case
    from gatecert.oracle.snapshot import load_snapshot

    if request.snapshot:
        return load_snapshot(Path(request.snapshot))
    return parse_case(request.case), {}


def judge_case(
    operation: Operation,
    case: Case,
    subject: Subject,
    candidate: Candidate,
    held: Mapping[str, torch.Tensor],
    save: str = "",
) -> ReplayAnswer:
    """The oracle's verdict on one case, in a process that has not imported the code under test.

    Raises:
        GatecertError: the case is none of the operation, or the overlay was not imported.
    """
    from gatecert.gates.oracle import (
        OracleGate,
        PreparedOracle,
        prepare_case,
        under_every_config,
    )
    from gatecert.lanes.interpreter.tuning import tuning_of
    from gatecert.mutants.overlay import install_overlay, overlay_proof
    from gatecert.oracle.snapshot import save_snapshot
    from gatecert.subjects import load_entry

    prepared = prepare_case(operation, case, subject, held)
    if save:
        save_snapshot(Path(save), case, prepared.inputs)
    gate = OracleGate()
    install_overlay(candidate.files)
    with contextlib.suppress(GatecertError):  # the oracle will say so
        load_entry(subject)
    if missed := overlay_proof(candidate.files):
        raise EnvironmentFailure(f"{candidate.id}: {', '.join(missed)} was not imported as given")
    # Which configuration a run took is not part of a case: an autotuned kernel takes them all.
    cases = tuple(under_every_config((prepared,), tuning_of().configs))
    oracle = PreparedOracle(gate.name, subject, operation, gate.comparator, cases)
    verdict = oracle.judge(candidate, stop_at_first=True)
    return ReplayAnswer(verdict, prepared.inputs.sha256)


if __name__ == "__main__":
    sys.exit(main())
