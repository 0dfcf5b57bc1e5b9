"""Requests and answers between the user's tree and the private copy that gates run in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gatecert.encoding import encode
from gatecert.errors import GatecertError
from gatecert.gates.config import GateConfig
from gatecert.mutants.records import Candidate
from gatecert.sandbox.imports import is_users
from gatecert.sandbox.placing import Placing, hand_down_copies, use_copies
from gatecert.sandbox.private_tree import PrivateTree, private_tree
from gatecert.sandbox.protocol import (
    Event,
    ExplainRequest,
    GateRef,
    Request,
    ShardRequest,
    decode_event,
)


@contextlib.contextmanager
def moved(request: Request) -> Iterator[tuple[Request, PrivateTree | None]]:
    """This process in a private copy of the project, and the request as it reads there; None
    and the request as it is where no gate of the user's runs.

    Raises:
        GatecertError: as the block does, in the user's own paths.
    """
    refs = external_gates(request)
    if not refs:
        yield request, None
        return
    tables = [table for ref in refs for table in (ref.config, ref.around) if table]
    root = refs[0].root
    roots = [root, *(_folder(root, table) for table in tables), *_own_paths(request)]
    exclude = [str(Path(root, path)) for table in tables for path in table.exclude]
    with private_tree(roots, exclude) as tree:
        placing = tree.placing
        hand_down_copies(placing)
        use_copies(placing)
        os.chdir(placing.place(str(Path.cwd())) or placing.place(root) or root)
        try:
            yield _request_at(request, placing), tree
        except GatecertError as error:
            raise type(error)(placing.unplace(str(error))) from None


def external_gates(request: Request) -> Sequence[GateRef]:
    """The user's own gates that a request will run."""
    if isinstance(request, ShardRequest):
        return [ref for ref in request.gates if ref.config is not None]
    if isinstance(request, ExplainRequest):
        return [] if request.gate.config is None else [request.gate]
    asks_gate = request.subject.operation is None and request.gate.config is not None
    return [request.gate] if asks_gate else []


def as_users(event: Event, tree: PrivateTree | None) -> Event:
    """An answer in the user's own paths."""
    if tree is None:
        return event
    return decode_event(encode(event).replace(tree.placing.tree.encode(), b""))


def _own_paths(request: Request) -> list[str]:
    return [path for path in request.subject.import_paths if is_users(f"{path}/x")]


def _folder(root: str, table: GateConfig) -> str:
    return str((Path(root) / table.rootdir).resolve())


def _request_at(request: Request, placing: Placing) -> Request:
    replace = msgspec.structs.replace
    paths = request.subject.import_paths
    subject = replace(
        request.subject, import_paths=tuple(placing.place(path) or path for path in paths)
    )
    if isinstance(request, ExplainRequest):
        candidates = tuple(_candidate_at(one, placing) for one in request.candidates)
        gate = _ref_at(request.gate, placing)
        return replace(request, subject=subject, gate=gate, candidates=candidates)
    if not isinstance(request, ShardRequest):
        return replace(request, subject=subject, gate=_ref_at(request.gate, placing))
    gates = tuple(_ref_at(ref, placing) for ref in request.gates)
    tasks = tuple(
        replace(task, candidate=_candidate_at(task.candidate, placing)) for task in request.tasks
    )
    return replace(request, subject=subject, gates=gates, tasks=tasks)


def _candidate_at(candidate: Candidate, placing: Placing) -> Candidate:
    files = {placing.place(path) or path: text for path, text in candidate.files.items()}
    return msgspec.structs.replace(candidate, files=files)


def _ref_at(ref: GateRef, placing: Placing) -> GateRef:
    if ref.config is None:
        return ref
    return GateRef(
        name=ref.name,
        root=placing.place(ref.root) or ref.root,
        config=_table_at(ref.config, ref.root, placing),
        around=_table_at(ref.around, ref.root, placing) if ref.around else None,
    )


def _table_at(table: GateConfig, root: str, placing: Placing) -> GateConfig:
    if table.kind == "sanitizer":
        return table
    folder = _folder(root, table)
    return msgspec.structs.replace(
        table,
        rootdir=placing.place(folder) or folder,
        args=tuple(map(placing.place_argument, table.args)),
        command=tuple(map(placing.place_argument, table.command)),
    )
