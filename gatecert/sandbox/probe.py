"""Learn what the original launches: kernels, their files, signatures and block sizes.

The launcher is called for real on one small case per dtype, and then dry (launches recorded,
not executed) at sizes over the whole declared domain, so that the compiled forms that a
launcher can ask for are known without paying for them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator

from gatecert.errors import EnvironmentFailure, GatecertError
from gatecert.gates.registry import make_gate
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy, Launch
from gatecert.mutants.records import original
from gatecert.oracle.case import Case
from gatecert.oracle.domain import domain_cases
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import Operation, resolve_operation
from gatecert.sandbox.protocol import Failed, Probed, ProbeRequest
from gatecert.subjects import Subject, load_entry


def probe(request: ProbeRequest) -> Probed | Failed:
    """What the original launches; a `Failed` says why it cannot be run."""
    try:
        if request.subject.operation is None:
            launches = list(_launches_of_gate(request))
        else:
            operation = resolve_operation(request.subject.operation)
            launches = list(_launches_of_entry(request.subject, operation, request.seed))
    except GatecertError as error:
        return Failed(str(error), int(error.exit_code))
    distinct = {(x.kernel, x.types, x.constexprs, x.num_warps, x.num_stages): x for x in launches}
    load_entry(request.subject)
    entry_path = inspect.getsourcefile(sys.modules[request.subject.entry_module])
    return Probed(
        launches=tuple(distinct.values()),
        modules=_modules_with_kernels(),
        entry_path=entry_path or "",
    )


def _launches_of_entry(subject: Subject, operation: Operation, seed: int) -> Iterator[Launch]:
    entry = load_entry(subject)
    cases = domain_cases(operation, dtypes=subject.dtypes, extra_dims=subject.dims, seed=seed)
    for dtype in subject.dtypes:
        first = next(case for case in cases if case.dtype == dtype)
        with interpreter.recording() as seen, interpreter.guarded(GuardPolicy.STRICT):
            _call(subject, entry, operation, first)
        yield from seen
    for case in cases:
        with interpreter.dry_run() as seen:
            _call(subject, entry, operation, case)
        yield from seen


def _call(subject: Subject, entry: object, operation: Operation, case: Case) -> None:
    assert callable(entry)
    try:
        entry(*make_inputs(operation, case).args)
    except Exception as error:
        raise EnvironmentFailure(
            f"subject {subject.name!r}: the original raised {type(error).__name__} on case "
            f"{case.id}: {error}; mend the kernel, or narrow dtypes and layouts in gatecert.toml"
        ) from error


def _launches_of_gate(request: ProbeRequest) -> Iterable[Launch]:
    gate = make_gate(request.gate.name, request.gate.config, request.gate.root)
    prepared = gate.prepare(request.subject, seed=request.seed, quick=True)
    with interpreter.recording() as seen:
        prepared.judge(original(request.subject.name), stop_at_first=False)
    return seen


def _modules_with_kernels() -> dict[str, str]:
    """Modules loaded from a source file outside Triton itself: where kernels may be."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in {"triton", "torch", "numpy"}:
            continue
        if not any(interpreter.is_kernel(value) for value in vars(module).values()):
            continue
        path = inspect.getsourcefile(module)
        if path is not None:
            found[name] = path
    return found
