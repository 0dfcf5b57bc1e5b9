"""Launches are the entry's where a call of it makes them, or a backward pass through its result."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import torch

from gatecert.lanes.records import Launch
from gatecert.mutants.entry_calls import entry_observed, showing_calls
from gatecert.sandbox.entry_launches import EntryLaunches

LINES = {"entry.py": 1, "other.py": 2}


def launch(kernel: str, dtype: str = "fp32", path: str = "entry.py") -> Launch:
    return Launch(f"m:{kernel}", (1, 1, 1), (("x", dtype),), (), launcher=(path, LINES[path]))


def seen_in(work: Callable[[EntryLaunches, Callable[..., Any]], None]) -> list[Launch]:
    """What is the entry's of what the work launches; the entry calls what it is given."""
    launches = EntryLaunches()
    entry = showing_calls(lambda function, *args: function(*args))
    with entry_observed(launches.calls, all_threads=True):
        work(launches, entry)
    return launches.of_entry()


def test_of_a_kernel_that_the_entry_launches_every_form_counts_and_no_other_launcher() -> None:
    def work(launches: EntryLaunches, entry: Callable[..., Any]) -> None:
        entry(launches.append, launch("mine"))
        launches.append(launch("mine", "bf16", "other.py"))
        launches.append(launch("theirs", path="other.py"))

    mine, elsewhere = seen_in(work)
    assert mine == launch("mine")
    assert (elsewhere.kernel, elsewhere.types) == ("m:mine", (("x", "bf16"),))
    assert elsewhere.launcher == ("", 0)


def test_where_the_entry_is_never_called_all_launches_count() -> None:
    everything = [launch("a"), launch("b", path="other.py")]

    def work(launches: EntryLaunches, entry: Callable[..., Any]) -> None:
        for one in everything:
            launches.append(one)

    assert seen_in(work) == everything


def test_threads_and_contexts_that_the_entry_starts_are_its_own() -> None:
    def work(launches: EntryLaunches, entry: Callable[..., Any]) -> None:
        def in_a_thread() -> None:
            thread = threading.Thread(target=launches.append, args=(launch("threaded"),))
            thread.start()
            thread.join()

        entry(in_a_thread)
        entry(contextvars.Context().run, launches.append, launch("fresh"))

    assert [one.kernel for one in seen_in(work)] == ["m:threaded", "m:fresh"]


def test_a_backward_pass_through_what_the_entry_returned_is_the_entrys() -> None:
    def function_launching(launches: EntryLaunches, name: str) -> Any:
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x * 2

            @staticmethod
            def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
                launches.append(launch(name))
                return gradient * 2

        return Doubled.apply

    def work(launches: EntryLaunches, entry: Callable[..., Any]) -> None:
        x = torch.ones(2, requires_grad=True)
        mine = entry(lambda: {"y": [function_launching(launches, "mine")(x) + 1]})
        theirs = function_launching(launches, "theirs")(x)
        (mine["y"][0].sum() + theirs.sum()).backward()

    assert [one.kernel for one in seen_in(work)] == ["m:mine"]
