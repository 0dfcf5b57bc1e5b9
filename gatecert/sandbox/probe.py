"""Learn what the original launches: kernels, their files, signatures and block sizes.

The launcher is called for real on one small case per dtype, and then dry (launches recorded,
not executed) at sizes and layouts over the whole declared domain and on every case of the
oracle, so that the compiled forms that a launcher can ask for are known without paying for them.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from gatecert.errors import EnvironmentFailure, GatecertError, described
from gatecert.gates.command.elsewhere import GateElsewhere
from gatecert.gates.oracle import OracleGate, check_declared
from gatecert.gates.oracle.cases import subject_cases
from gatecert.gates.registry import make_gate
from gatecert.lanes import interpreter
from gatecert.lanes.interpreter.tuning import Tuning, tuning_of
from gatecert.lanes.records import GuardPolicy, Launch
from gatecert.mutants.records import original
from gatecert.oracle.case import Case
from gatecert.oracle.domain import domain_cases
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import Operation, resolve_operation
from gatecert.profiles import DimsRule, dims_around
from gatecert.sandbox.caveats import check_baseline
from gatecert.sandbox.entry_launches import launches_of_entry, of_entry
from gatecert.sandbox.imports import is_users
from gatecert.sandbox.private_tree import is_lasting, users_path
from gatecert.sandbox.protocol import Failed, Probed, ProbeRequest
from gatecert.sandbox.reads import Reads, watch_reads
from gatecert.subjects import Subject, load_entry

_BLOCK_SIZES = range(8, 513)
_MOST_BLOCKS_PER_DIM = 2


def probe(request: ProbeRequest) -> Probed | Failed:
    """What the original launches; a `Failed` says why it cannot be run."""
    subject = request.subject
    blocks: dict[str, tuple[int, ...]] = dict(subject.blocks)
    dims: dict[str, tuple[int, ...]] = dict(subject.dims)
    tuning = Tuning()
    elsewhere: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    before = set(sys.modules)
    reads = watch_reads(is_users)
    try:
        entry = load_entry(subject)
        if subject.operation is None:
            launches, elsewhere = _launches_of_gate(request)
        else:
            operation = resolve_operation(subject.operation)
            check_declared(operation, subject, request.seed)
            launches = list(_launches_on_domain(subject, entry, operation, request.seed))
            blocks = blocks or infer_blocks(launches, operation.tiled)
            tuning = tuning_of({launch.kernel for launch in launches})
            dims = dims_of(subject, operation, blocks, tuning)
            known = msgspec.structs.replace(subject, blocks=blocks, dims=dims)
            strategy = subject.profile.strategy or OracleGate().strategy
            cases, notes = subject_cases(operation, known, strategy=strategy, seed=request.seed)
            launches += _launches_dry(subject, entry, operation, cases)
    except GatecertError as error:
        return Failed(str(error), int(error.exit_code))
    distinct = {
        (x.kernel, x.types, x.constexprs, x.num_warps, x.num_stages, x.launcher): x
        for x in launches
    }
    home, home_path = find_home(subject.entry, entry)
    modules = {**elsewhere, **_modules_with_kernels()}
    sources = _hash_sources(modules, reads, subject.import_paths)
    return Probed(
        launches=tuple(distinct.values()),
        modules=modules,
        home=home,
        home_path=home_path,
        blocks=blocks,
        sources_sha256=_hash_of_all(sources, reads),
        preload=tuple(sorted(n for n in set(sys.modules) - before if n.startswith("torch."))),
        sources=sources,
        dims=dims,
        configs=tuning.configs,
        notes=notes,
    )


def infer_blocks(launches: Iterable[Launch], tiled: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Block sizes that launches show: a power of two that a constexpr holds in every launch.

    Which dim it tiles is not known, so every tiled dim gets it.
    """
    seen: dict[tuple[str, str], set[object]] = {}
    for launch in launches:
        for name, value in launch.constexprs:
            seen.setdefault((launch.kernel, name), set()).add(value)
    fixed = {
        value
        for values in seen.values()
        if len(values) == 1
        for value in values
        if type(value) is int and value in _BLOCK_SIZES and value & (value - 1) == 0
    }
    sizes = tuple(sorted(fixed))[:_MOST_BLOCKS_PER_DIM]
    return dict.fromkeys(tiled, sizes) if sizes else {}


def dims_of(
    subject: Subject, operation: Operation, blocks: dict[str, tuple[int, ...]], tuning: Tuning
) -> dict[str, tuple[int, ...]]:
    """The sizes that the oracle adds, by the rule of the subject's profile.

    A dim with a few allowed sizes keeps those: a block size is none of them.
    """
    rule = subject.profile.dims
    if rule is DimsRule.LISTED:
        return dict(subject.dims)
    tiles = tuning.tiles if rule is DimsRule.AROUND_CONFIGS else ()
    tiled = [dim for dim in operation.tiled if dim not in operation.sizes]
    return dims_around(subject.dims, tiled, blocks, tiles)


def find_home(spec: str, entry: Callable[..., Any]) -> tuple[str, str]:
    """Where the entry is defined, as `module:qualname`, and that module's file.

    A package that only re-exports the entry is not its home: tests may import it from there.
    Only a place that holds the entry itself counts, not what it wraps.
    """
    spec_module, _, path = spec.partition(":")
    target = inspect.unwrap(entry)
    module = str(getattr(target, "__module__", spec_module))
    namespace = vars(sys.modules[module]) if module in sys.modules else {}
    names = [name for name, value in namespace.items() if value is entry]
    if names:
        path = path if path in names else names[0]
    elif _resolve(module, str(getattr(target, "__qualname__", ""))) is entry:
        path = target.__qualname__
    else:
        module = spec_module
    return f"{module}:{path}", inspect.getsourcefile(sys.modules[module]) or ""


def _resolve(module: str, path: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _launches_on_domain(
    subject: Subject, entry: Callable[..., Any], operation: Operation, seed: int
) -> Iterator[Launch]:
    cases = domain_cases(
        operation,
        dtypes=subject.dtypes,
        layouts=subject.layouts,
        extra_dims=subject.dims,
        seed=seed,
    )
    for dtype in subject.dtypes:
        first = next(case for case in cases if case.dtype == dtype)
        with interpreter.recording() as seen, interpreter.guarded(GuardPolicy.STRICT):
            _call(subject, entry, operation, first)
        yield from seen
    yield from _launches_dry(subject, entry, operation, cases)


def _launches_dry(
    subject: Subject, entry: Callable[..., Any], operation: Operation, cases: Iterable[Case]
) -> Iterator[Launch]:
    for case in cases:
        with interpreter.dry_run() as seen:
            _call(subject, entry, operation, case)
        yield from seen


def _call(subject: Subject, entry: Callable[..., Any], operation: Operation, case: Case) -> None:
    inputs = make_inputs(operation, case)
    try:
        entry(*inputs.args)
    except Exception as error:
        if not _takes(entry, inputs.args):
            raise EnvironmentFailure(
                f"subject {subject.name!r}: operation {subject.operation!r} calls the entry with "
                f"{', '.join(inputs.names)}, and it raised {described(error)}; is it the right "
                "operation in gatecert.toml?"
            ) from error
        raise EnvironmentFailure(
            f"subject {subject.name!r}: on case {case.id} the original raised "
            f"{described(error)}; mend the kernel, or narrow dtypes and layouts in gatecert.toml"
        ) from error


def _takes(entry: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Can it be called with as many arguments, as far as its signature is known?"""
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*args)
    except TypeError:
        return False
    return True


def _launches_of_gate(request: ProbeRequest) -> tuple[list[Launch], dict[str, str]]:
    """What the gate launches by the entry; all that it launches, where it never calls it. With the
    files of modules with kernels that only processes of its own have imported."""
    ref, candidate = request.gate, original(request.subject.name)
    gate = make_gate(ref.name, ref.config, ref.root, ref.around, ref.oracle)
    prepared = gate.prepare(request.subject, seed=request.seed, quick=True)
    if isinstance(prepared, GateElsewhere):
        verdict, seen = prepared.run_elsewhere(candidate, {}, stop_at_first=False)
        check_baseline(ref.name, [verdict], must_accept=True)
        modules = {name: path for name, path in seen.modules.items() if is_lasting(path)}
        return of_entry(seen.launches, seen.by_entry, seen.entry_calls), modules
    with launches_of_entry() as launches:
        prepared.judge(candidate, stop_at_first=False)
    return launches.of_entry(), {}


def _modules_with_kernels() -> dict[str, str]:
    """Modules loaded from a source file outside Triton itself: where kernels may be.

    One that the gate wrote for itself is left out: nobody can read it later.
    """
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in {"triton", "torch", "numpy"}:
            continue
        if not any(interpreter.is_kernel(value) for value in vars(module).values()):
            continue
        path = inspect.getsourcefile(module)
        if path is not None and is_lasting(path):
            found[name] = path
    return found


def _hash_sources(
    modules: dict[str, str], reads: Reads, folders: tuple[str, ...]
) -> dict[str, str]:
    """By path the hash of every file that was imported and is no library's, of those with
    kernels, and of those below the folders that were read."""
    paths = set(modules.values()) | {path for path in reads.files(folders) if is_users(path)}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.partition(".")[0] == "gatecert":
            continue  # its fingerprint is part of every key
        if isinstance(path, str) and path.endswith(".py") and is_users(path):
            paths.add(path)
    return {
        users_path(path): hashlib.sha256(Path(path).read_bytes()).hexdigest()
        for path in sorted(paths)
        if is_lasting(path)
    }


def _hash_of_all(sources: dict[str, str], reads: Reads) -> str:
    settings = [(name, os.environ.get(name)) for name in sorted(reads.variables)]
    return hashlib.sha256(msgspec.json.encode((sources, settings))).hexdigest()
