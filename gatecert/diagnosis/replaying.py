"""Run captured calls again, in a process that has the candidate's overlay, and say what they gave.

A plain run is a gate's: programs first to last, bad loads finite, masked-off lanes 0.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import torch

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.values import TensorValue, Unkept, Value, kept, made
from gatecert.errors import described
from gatecert.lanes import interpreter
from gatecert.lanes.records import Finding, GuardPolicy, Launch, LaunchTrace
from gatecert.oracle.formats import raw_bytes


class Manner(str, enum.Enum):
    """How a call is run."""

    PLAIN = "plain"
    """As the gate runs it."""
    AGAIN = "a second time"
    """The same once more, in the same process."""
    POISONED = "with poison"
    """What nobody wrote, and masked-off lanes without a value, hold NaN."""
    REVERSED = "with programs reversed"
    """Programs last to first."""
    INTERLEAVED = "with programs interleaved"
    """Programs take turns."""
    LATE = "with programs interleaved and late writes"
    """Programs take turns, and write late."""


_ORDERS = {
    Manner.REVERSED: interpreter.ProgramOrder.REVERSED,
    Manner.INTERLEAVED: interpreter.ProgramOrder.INTERLEAVED,
    Manner.LATE: interpreter.ProgramOrder.INTERLEAVED_LATE,
}


class LaunchSight(msgspec.Struct, frozen=True):
    """A launch, and a hash of all bits of the tensors that it was given, after it."""

    kernel: str
    sha256: str


class Ran(msgspec.Struct, frozen=True):
    """What a call gave: its results in order, the arguments that it changed by their numbers, or
    the `error` that it raised. `shares` says that programs met in memory. `hung` that it gave no
    answer in its time: that says nothing, unless the original was many times as fast."""

    results: tuple[Value, ...] = ()
    changed: dict[int, TensorValue] = {}
    error: str = ""
    findings: tuple[Finding, ...] = ()
    shares: bool = False
    launches: tuple[LaunchSight, ...] = ()
    hung: bool = False


def target_of(call: Kept, entry: Callable[..., Any]) -> Callable[..., Any]:
    """What is called: the entry, or the kernel that the gate launches by itself."""
    if not call.kernel:
        return entry
    module, _, path = call.kernel.partition(":")
    kernel: Any = importlib.import_module(module)
    for name in path.split("."):
        kernel = getattr(kernel, name)
    while interpreter.is_kernel(kernel.fn):  # an autotuner, which has chosen already
        kernel = kernel.fn
    return functools.partial(kernel.run, grid=call.grid, warmup=False)


def run_call(entry: Callable[..., Any], call: Kept, manner: Manner) -> Ran:
    """Call the entry on new tensors that are as those of the call were."""
    tensors: dict[int, torch.Tensor] = {}
    args = [made(arg, tensors) for arg in call.args]
    kwargs = {name: made(arg, tensors) for name, arg in call.kwargs.items.items()}
    before = {number: raw_bytes(tensor).tobytes() for number, tensor in tensors.items()}
    numbers = {id(tensor): number for number, tensor in tensors.items()}
    seen = _Launches()
    policy = GuardPolicy.STRICT if manner is Manner.POISONED else GuardPolicy.LENIENT
    result: Any = None
    said = ""
    with interpreter.guarded(policy) as log, _in_manner(manner), interpreter.observed(seen):
        try:
            result = entry(*args, **kwargs)
        except Exception as error:
            said = described(error)
    return Ran(
        results=() if said else tuple(_results(result, numbers)),
        changed={
            number: one
            for number, tensor in tensors.items()
            if before[number] != raw_bytes(tensor).tobytes()
            and isinstance(one := kept(tensor, {id(tensor): number}), TensorValue)
        },
        error=log.failures()[0] if log.failures() else said,
        findings=log.findings(),
        shares=log.shares_memory,
        launches=tuple(seen.sights),
    )


@contextlib.contextmanager
def _in_manner(manner: Manner) -> Iterator[None]:
    memory = contextlib.nullcontext()
    if manner is not Manner.POISONED:
        memory = interpreter.repeatable_memory()  # type: ignore[assignment]
    order = _ORDERS.get(manner, interpreter.ProgramOrder.FORWARD)
    with memory, interpreter.scheduled(order):
        yield


def _results(result: Any, numbers: dict[int, int]) -> Iterator[Value]:
    """What was returned; arguments among it keep their numbers."""
    for part in result if isinstance(result, tuple | list) else (result,):
        with contextlib.suppress(Unkept):
            yield kept(part, numbers)


class _Launches:
    """Hashes what launches leave in their tensors, as an observer of them."""

    def __init__(self) -> None:
        self.sights: list[LaunchSight] = []

    def before(self, launch: Launch, tensors: Mapping[str, Any]) -> None:
        """Nothing is kept."""

    def after(self, launch: Launch, tensors: Mapping[str, Any], trace: LaunchTrace) -> None:
        """Note what is there now."""
        digest = hashlib.sha256()
        for name, tensor in tensors.items():
            digest.update(name.encode())
            digest.update(raw_bytes(tensor).tobytes())
        self.sights.append(LaunchSight(launch.kernel, digest.hexdigest()))
