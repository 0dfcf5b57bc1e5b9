"""Import in the server what the gate will import anyway, but never the code under test.

`torch.testing.assert_close` alone imports 500 modules: half a second in every child, unless
its parent has them. Which modules those are is learned from a run, not guessed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import site
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from gatecert.lanes import interpreter

_NEVER_UNDER_TEST = {"triton", "torch", "numpy"}


def packages_under_test(entry_module: str) -> set[str]:
    """Top-level packages of the entry and of every loaded module that holds a kernel."""
    packages = {entry_module.partition(".")[0]}
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if package in _NEVER_UNDER_TEST or package in packages:
            continue
        if any(interpreter.is_kernel(value) for value in list(vars(module).values())):
            packages.add(package)
    return packages


def library_modules(names: Iterable[str], under_test: set[str]) -> list[str]:
    """Those of the loaded modules `names` that come from the standard library or
    site-packages and do not belong to the code under test."""
    folders = _library_folders()
    return [
        name
        for name in names
        if name.partition(".")[0] not in under_test and _is_library(sys.modules[name], folders)
    ]


def any_mentions(names: Iterable[str], under_test: set[str]) -> bool:
    """Does the source of any of the loaded modules hold the name of a package under test?

    If none does, none imports it, and there is no need to try.
    """
    origins = (getattr(sys.modules[name].__spec__, "origin", "") for name in names)
    words = [package.encode() for package in under_test]
    return any(
        word in Path(origin).read_bytes()
        for origin in origins
        if origin.endswith(".py")
        for word in words
    )


def importable_without(names: Sequence[str], under_test: set[str]) -> list[str]:
    """Those of `names` whose import neither fails nor asks for the code under test.

    Imports them all, so call it in a throw-away child.
    """
    refusal = _Refusal(under_test)
    sys.meta_path.insert(0, refusal)
    good = []
    for name in names:
        before = set(sys.modules)
        refusal.asked = False
        if _imports(name) and not refusal.asked:
            good.append(name)
            continue
        # Forgotten, so that whatever needs it asks again.
        for half_imported in set(sys.modules) - before:
            del sys.modules[half_imported]
    return good


def warm_up(names: Iterable[str]) -> None:
    """Import the modules here, and keep the collector of every later child off them."""
    for name in names:
        _imports(name)
    gc.collect()
    gc.freeze()


class _Refusal(importlib.abc.MetaPathFinder):
    """Refuses to find the code under test, and remembers that it was asked."""

    def __init__(self, under_test: set[str]) -> None:
        self._under_test = under_test
        self.asked = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """None, or ModuleNotFoundError for the code under test."""
        if fullname.partition(".")[0] in self._under_test:
            self.asked = True
            raise ModuleNotFoundError(f"{fullname} is under test", name=fullname)
        return None


def _imports(name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(name)
        except Exception:
            return False
    return True


def _library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    found = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({Path(folder).resolve() for folder in found})


def _is_library(module: ModuleType, folders: Sequence[Path]) -> bool:
    spec = getattr(module, "__spec__", None)
    if spec is None or not spec.has_location or not spec.origin:
        return False
    origin = Path(spec.origin).resolve()
    return any(origin.is_relative_to(folder) for folder in folders)
