"""Which launchers a subject calls, and their syntax together with their kernels'."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

import msgspec

from gatecert.mutants.discover import (
    find_launchers,
    function_at,
    home_of,
    kernel_syntax,
    launched_names,
)
from gatecert.mutants.names import module_names
from gatecert.mutants.records import Kernel, Launcher
from gatecert.operators.facts.kernel import KernelSyntax, parse_module
from gatecert.operators.facts.launcher import LauncherSyntax


@dataclass(frozen=True, slots=True)
class Sources:
    """Modules that were imported: their files, texts and kernels by `module:qualname`."""

    paths: Mapping[str, str]
    texts: Mapping[str, str]
    kernels: Mapping[str, Kernel]


def launchers_at(
    places: Iterable[tuple[str, int]], sources: Sources, kernels: Collection[str], entry: str
) -> list[Launcher]:
    """The launchers of some of the kernels in which launches were seen, by file and line.

    A launcher is found if it names the kernel that it launches. It must belong to the package
    of the entry's module or of the kernel: a test that launches a kernel by itself is part of a
    gate, and no gate is mutated.
    """
    packages = {name.partition(":")[0].partition(".")[0] for name in (entry, *kernels)}
    defining = {name.partition(":")[0] for name in kernels}
    seen: dict[str, set[str]] = {}
    for path, line in places:
        for module, file in sources.paths.items():
            if os.path.realpath(file) == os.path.realpath(path):
                seen.setdefault(module, set()).add(function_at(sources.texts[file], line))
    found = []
    for module, functions in sorted(seen.items()):
        path = sources.paths[module]
        is_test = PurePath(path).name.startswith(("test_", "conftest"))
        if module not in defining and (is_test or module.partition(".")[0] not in packages):
            continue
        for launcher in find_launchers(module, path, sources.texts[path]):
            homes = (home_of(name, sources.kernels) for name in launcher.launches)
            launches = tuple(home for home in homes if home is not None and home in kernels)
            if launcher.qualname in functions and launches:
                found.append(msgspec.structs.replace(launcher, launches=launches))
    return found


def launcher_syntax(launcher: Launcher, sources: Sources) -> LauncherSyntax:
    """The syntax of a launcher, with that of every kernel whose source was imported.

    Kernels that the launcher record does not name are left out.

    Raises:
        InternalError: the text has no function of that name.
    """
    text = sources.texts[launcher.path]
    module = parse_module(text)
    kernels: dict[str, KernelSyntax | None] = {}
    for name, imported in launched_names(launcher.module, launcher.path, text).items():
        home = home_of(imported, sources.kernels)
        if home in launcher.launches and home is not None:
            kernel = sources.kernels[home]
            kernels[name] = kernel_syntax(parse_module(sources.texts[kernel.path]), kernel.qualname)
    is_package = PurePath(launcher.path).name == "__init__.py"
    names = module_names(launcher.module, is_package, ast.parse(text))
    function = kernel_syntax(module, launcher.qualname).function
    return LauncherSyntax(module, function, launcher.qualname, names.imported, kernels)
