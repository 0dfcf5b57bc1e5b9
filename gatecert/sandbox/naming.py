"""One name for a kernel, however the gate came to import its module."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping

import msgspec

from gatecert.lanes.records import Launch
from gatecert.sandbox.private_tree import users_path


def file_here(module: str) -> str:
    """The file of a module that is imported in this process; "" where there is none."""
    return getattr(sys.modules.get(module), "__file__", None) or ""


def under_known_names(
    launches: Iterable[Launch],
    modules: Mapping[str, str],
    file_of: Callable[[str], str] = file_here,
) -> list[Launch]:
    """The launches with their kernels named as in `modules`, which maps modules to files.

    A gate may import a file under another name than the subject's entry does: pytest calls
    tests/test_x.py `test_x` or `tests.test_x`, as its import mode and the folder tell it.
    """
    known = {os.path.realpath(path): name for name, path in sorted(modules.items(), reverse=True)}
    names: dict[str, str] = {}

    def renamed(launch: Launch) -> Launch:
        module, colon, qualname = launch.kernel.partition(":")
        if module in modules:
            return launch
        if module not in names:
            path = os.path.realpath(users_path(file_of(module)))
            names[module] = known.get(path, module)
        return msgspec.structs.replace(launch, kernel=names[module] + colon + qualname)

    return [renamed(launch) for launch in launches]
