"""Calls of an entry are shown, whatever name they are made by, and are otherwise as they were."""

from __future__ import annotations

import contextvars
import sys
import types
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gatecert.mutants.entry_calls import entry_observed, show_entry, showing_calls


class Observer:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def entering(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.seen.append((args, dict(kwargs)))

    def left(self, result: Any, error: BaseException | None) -> None:
        self.seen.append((result, type(error)))


@pytest.fixture
def package() -> Iterator[types.ModuleType]:
    """`acme`, which re-exports what `acme.kernels` defines."""
    home, package = types.ModuleType("acme.kernels"), types.ModuleType("acme")
    source = (
        "def softmax(x, *, dim=1):\n    return (x, dim)\n"
        "alias = softmax\n"
        "class Ops:\n"
        "    @staticmethod\n    def fixed(x):\n        return x\n"
        "    def bound(self, x):\n        return x\n"
        "made = type('Made', (), {'__call__': lambda self, x: x})()\n"
    )
    sys.modules["acme.kernels"], sys.modules["acme"] = home, package
    exec(source, vars(home))
    package.softmax, package.Ops, package.made = home.softmax, home.Ops, home.made  # type: ignore[attr-defined]
    yield package
    del sys.modules["acme.kernels"], sys.modules["acme"]


def test_a_call_is_shown_with_what_came_of_it(package: types.ModuleType) -> None:
    assert show_entry("acme", "softmax")
    observer = Observer()
    with entry_observed(observer):
        assert package.softmax(3, dim=0) == (3, 0)
        assert sys.modules["acme.kernels"].alias(4) == (4, 1)
        with pytest.raises(TypeError):
            package.softmax()
    package.softmax(5)
    assert observer.seen == [
        ((3,), {"dim": 0}), ((3, 0), type(None)),
        ((4,), {}), ((4, 1), type(None)),
        ((), {}), (None, TypeError),
    ]  # fmt: skip
    assert package.softmax.__name__ == "softmax"


def test_asking_twice_shows_each_call_once(package: types.ModuleType) -> None:
    assert show_entry("acme", "softmax")
    assert show_entry("acme.kernels", "softmax")
    observer = Observer()
    with entry_observed(observer):
        package.softmax(3)
    assert len(observer.seen) == 2


@pytest.mark.parametrize("path", ["Ops.fixed", "Ops.bound"])
def test_methods_are_shown(package: types.ModuleType, path: str) -> None:
    assert show_entry("acme", path)
    observer = Observer()
    with entry_observed(observer):
        assert getattr(package.Ops(), path.partition(".")[2])(7) == 7
    assert observer.seen[-1] == (7, type(None))


@pytest.mark.parametrize("path", ["made", "gone", "Gone.made"])
def test_what_is_no_plain_function_is_left_alone(package: types.ModuleType, path: str) -> None:
    before = dict(vars(package))
    assert not show_entry("acme", path)
    assert vars(package) == before


def test_every_observer_is_told_innermost_first_at_the_end() -> None:
    told: list[str] = []

    class Named(Observer):
        def __init__(self, name: str) -> None:
            super().__init__()
            self._name = name

        def left(self, result: Any, error: BaseException | None) -> None:
            told.append(self._name)

    with entry_observed(Named("outer")), entry_observed(Named("inner")):
        showing_calls(lambda: None)()
    assert told == ["inner", "outer"]


def test_calls_in_a_fresh_context_are_shown_and_those_of_other_threads_where_asked(
    package: types.ModuleType,
) -> None:
    assert show_entry("acme", "softmax")
    mine, all_of_them = Observer(), Observer()
    with (
        entry_observed(mine),
        entry_observed(all_of_them, all_threads=True),
        ThreadPoolExecutor(1) as pool,
    ):
        contextvars.Context().run(package.softmax, 1)
        pool.submit(package.softmax, 2).result()
    assert [given for given, _ in mine.seen[::2]] == [(1,)]
    assert [given for given, _ in all_of_them.seen[::2]] == [(1,), (2,)]
