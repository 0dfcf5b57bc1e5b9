"""Launchers as text, seen as the operators see them."""

from __future__ import annotations

from gatecert.mutants.discover import find_kernels, find_launchers
from gatecert.mutants.launchers import Sources, launcher_syntax
from gatecert.operators.facts.launcher import LauncherSyntax
from gatecert.operators.records import Operator, Site


def launcher_of(text: str) -> LauncherSyntax:
    """The last launcher of a module's text, with the kernels of that text."""
    kernels = {kernel.name: kernel for kernel in find_kernels("acme.ops", "/ops.py", text)[0]}
    sources = Sources({"acme.ops": "/ops.py"}, {"/ops.py": text}, kernels)
    return launcher_syntax(find_launchers("acme.ops", "/ops.py", text)[-1], sources)


def sites_in_launcher(operator: Operator, text: str) -> tuple[Site, ...]:
    """Every site of an operator in the last launcher of a text, in source order."""
    assert operator.find_in_launcher is not None
    found = operator.find_in_launcher(launcher_of(text))
    return tuple(sorted(found, key=lambda site: sorted(site.edits)))
