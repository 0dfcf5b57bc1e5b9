"""Spread shards over servers. Supervisors are threads that never run a candidate themselves."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
from joblib import Parallel, delayed

from gatecert.errors import (
    ControlRejected,
    EnvironmentFailure,
    ExitCode,
    GatecertError,
    InternalError,
    NothingScored,
    UsageError,
)
from gatecert.gates.reads import GateReads
from gatecert.gates.records import Verdict
from gatecert.sandbox.client import Server
from gatecert.sandbox.copy_plan import repository_of
from gatecert.sandbox.imports import is_users
from gatecert.sandbox.protocol import (
    Failed,
    Judged,
    Prepared,
    Probed,
    ProbeRequest,
    ShardRequest,
    Task,
)
from gatecert.store import RunRecord
from gatecert.store.reads import hashed

Place: TypeAlias = tuple[str, str]
"""Candidate and gate: what tells a task apart within a request."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class ServerPool:
    """As many warm servers as there are jobs, lent one at a time."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._free: queue.SimpleQueue[Server] = queue.SimpleQueue()
        self.size = len(servers)
        for server in servers:
            self._free.put(server)

    @contextmanager
    def lent(self) -> Iterator[Server]:
        """One server for the duration of the block."""
        server = self._free.get()
        try:
            yield server
        finally:
            self._free.put(server)


@contextmanager
def server_pool(jobs: int, libraries: Sequence[str] = ()) -> Iterator[ServerPool]:
    """Start the servers, and end them and all they started, whatever happens. `libraries` are
    imported in each, where they are installed.

    They are started here, in the caller's thread, because a server dies with the thread that
    started it.
    """
    with ExitStack() as stack:
        yield ServerPool([stack.enter_context(Server(libraries)) for _ in range(jobs)])


def spread(
    pool: ServerPool, work: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Result]:
    """`work` over all items on as many threads as there are servers, results as they come."""
    parallel = Parallel(
        n_jobs=pool.size, backend="threading", return_as="generator_unordered", batch_size=1
    )
    yield from parallel(delayed(work)(item) for item in items)


def ask_probe(pool: ServerPool, request: ProbeRequest) -> Probed:
    """Probe a subject; raises the error that the server reports."""
    with pool.lent() as server:
        events = list(server.ask(request))
    for event in events:
        if isinstance(event, Failed):
            raise error_of(event)
        if isinstance(event, Probed):
            return event
    raise InternalError(f"probing {request.subject.name} ended without an answer")


def ask_shard(
    pool: ServerPool,
    request: ShardRequest,
    record: RunRecord,
    keys: Mapping[Place, str],
    on_verdict: Callable[[Verdict], None],
    on_prepared: Callable[[Prepared], None],
    on_judged: Callable[[Verdict], None] = lambda verdict: None,
) -> tuple[Verdict, ...]:
    """Judge a shard; verdicts that the store already holds under a task's key are taken from
    there. `on_verdict` is told of all, `on_judged` of the new ones."""
    known = record.known(keys[_place(task)] for task in request.tasks)
    verdicts: dict[Place, Verdict] = {}
    for task in request.tasks:
        verdict = known.get(keys[_place(task)])
        if verdict is not None:
            verdicts[_place(task)] = verdict
            on_verdict(verdict)
    missing = tuple(task for task in request.tasks if _place(task) not in verdicts)
    if missing:
        rest = msgspec.structs.replace(request, tasks=missing)
        failed: Failed | None = None
        with pool.lent() as server:
            for event in server.ask(rest):
                if isinstance(event, Failed):
                    failed = event
                if isinstance(event, Prepared):
                    on_prepared(event)
                if isinstance(event, Judged):
                    verdict = _with_hashes(event.verdict, request)
                    place = (verdict.candidate, verdict.gate)
                    record.keep(keys[place], verdict, event.observed)
                    verdicts[place] = verdict
                    on_judged(verdict)
                    on_verdict(verdict)
        if failed is not None:
            raise error_of(failed)
    return tuple(verdicts[_place(task)] for task in request.tasks if _place(task) in verdicts)


def _with_hashes(verdict: Verdict, request: ShardRequest) -> Verdict:
    """The verdict with marks of what its gate read, if it says what that was: beyond what it read
    on the original, which is part of the key."""
    if verdict.reads is None:
        return verdict
    reads, first = verdict.reads, request.originals.get(verdict.gate)
    if first is not None and first.candidate != verdict.candidate:
        reads = reads.beyond(first.reads or GateReads())
    tables = ((ref.root, ref.config.rootdir) for ref in request.gates if ref.config is not None)
    roots = [os.path.realpath(Path(*folders)) for folders in tables]
    own = [path for path in request.subject.import_paths if is_users(f"{path}/x")]
    tops = {*map(repository_of, roots), *own}
    return msgspec.structs.replace(verdict, reads=hashed(reads, tops) or None)


def error_of(failed: Failed) -> GatecertError:
    """The error behind a server's `Failed`, as an exception of the same exit code."""
    kinds = (UsageError, ControlRejected, EnvironmentFailure, NothingScored, InternalError)
    by_code = {kind.exit_code: kind for kind in kinds}
    return by_code.get(ExitCode(failed.exit_code), EnvironmentFailure)(failed.message)


def _place(task: Task) -> Place:
    return task.candidate.id, task.gate
