"""The process that `gatecert replay` runs a case in: request on stdin, answer on stdout."""

from __future__ import annotations

import contextlib
import sys

import msgspec

from gatecert.cli.replay import ReplayAnswer, ReplayRequest
from gatecert.errors import ExitCode, GatecertError, described


def main() -> int:
    """Run one request; an error is the last line of stderr and the exit code."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ReplayRequest)
    sys.path[:0] = [path for path in request.subject.import_paths if path not in sys.path]
    try:
        answer = _replay(request)
    except GatecertError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    except Exception as error:
        print(f"case {request.case!r} could not be run: {described(error)}", file=sys.stderr)
        return int(ExitCode.INTERNAL)
    print(msgspec.json.encode(answer).decode())
    return 0


def _replay(request: ReplayRequest) -> ReplayAnswer:
    from gatecert.lanes import interpreter

    interpreter.activate()
    from gatecert.gates.oracle import (
        OracleGate,
        PreparedOracle,
        prepare_case,
        under_every_config,
    )
    from gatecert.lanes.interpreter.tuning import tuning_of
    from gatecert.mutants.overlay import install_overlay
    from gatecert.oracle.case import parse_case
    from gatecert.oracle.operations import resolve_operation
    from gatecert.subjects import load_entry

    subject = request.subject
    operation = resolve_operation(subject.operation or "")
    prepared = prepare_case(operation, parse_case(request.case), subject)
    gate = OracleGate()
    install_overlay(request.candidate.files)
    with contextlib.suppress(GatecertError):  # the oracle will say so
        load_entry(subject)
    # Which configuration a run took is not part of a case: an autotuned kernel takes them all.
    cases = tuple(under_every_config((prepared,), tuning_of().configs))
    oracle = PreparedOracle(gate.name, subject, operation, gate.comparator, cases)
    verdict = oracle.judge(request.candidate, stop_at_first=True)
    return ReplayAnswer(verdict, prepared.inputs.sha256)


if __name__ == "__main__":
    sys.exit(main())
