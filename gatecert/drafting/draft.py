"""From a project to the text of its gatecert.toml."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from gatecert.drafting.calls import Calls, Function, read_calls
from gatecert.drafting.guess import Guess, guess_operation
from gatecert.drafting.parameters import signature_of, takes_tensors
from gatecert.drafting.project import Project, kernels_of, read_project
from gatecert.drafting.render import render
from gatecert.drafting.suites import dtypes_in, installed_sources, on_cuda, tests_of
from gatecert.errors import NothingScored
from gatecert.mutants.records import Kernel, Skip


class DraftedSubject(msgspec.Struct, frozen=True):
    """One `[subject.NAME]`. `guess` is the operation, which is left to a person unless `sure`;
    `dtypes` are those that its tests name."""

    name: str
    entry: str
    signature: str
    path: str
    line: int
    kernels: tuple[str, ...]
    guess: str
    sure: bool
    why: str
    dtypes: tuple[str, ...]
    tests: tuple[str, ...]


class Draft(msgspec.Struct, frozen=True):
    """A drafted configuration and what it was drafted from."""

    config: str
    subjects: tuple[DraftedSubject, ...]
    import_paths: tuple[str, ...]
    tests: tuple[str, ...]
    skipped: tuple[Skip, ...]

    @property
    def next_command(self) -> str:
        """What to run now, from the folder of the configuration."""
        return "gatecert certify --gate tests" if self.tests else "gatecert certify"


def draft(root: Path) -> Draft:
    """Look at a repository and draft its configuration.

    Raises:
        NothingScored: it has no Triton kernel, or no function to call one by.
    """
    project = _with_installed(read_project(root))
    if not project.kernels:
        reasons = _reasons(project.skipped)
        raise NothingScored(
            f"{root}: no @triton.jit function in {len(project.files)} Python files{reasons}"
        )
    calls = read_calls(project)
    entries = entries_of(project, calls)
    skipped = [*project.skipped, *_without_entry(project, calls, entries)]
    if not entries:
        raise NothingScored(
            f"{root}: kernels were found, but no function with tensor parameters that launches "
            f"one{_reasons(skipped)}"
        )
    names = _names_of(entries)
    subjects = tuple(
        _subject(names[entry.name], entry, project, calls)
        for entry in sorted(entries, key=lambda entry: (entry.file.shown, entry.node.lineno))
    )
    tests = tuple(sorted({test for subject in subjects for test in subject.tests}))
    import_paths = _import_paths(project.root, entries)
    cuda = on_cuda(test for test in project.tests if test.shown in tests)
    text = render(subjects, import_paths, tests, skipped, len(project.files), cuda)
    return Draft(text, subjects, import_paths, tests, tuple(skipped))


def entries_of(project: Project, calls: Calls) -> tuple[Function, ...]:
    """Public functions with tensor parameters that launch kernels, themselves or through others.

    Of those that launch one kernel, the ones that tests import are taken if there are any; and
    of two where one calls the other, the one that is called.
    """
    candidates = {
        name: function
        for name, function in calls.functions.items()
        if function.is_public and calls.kernels(name) and takes_tensors(function.node)
    }
    tested = {name for name, function in candidates.items() if tests_of(function, project)}
    # Of an installed package only what the tests use is the team's.
    candidates = {n: f for n, f in candidates.items() if f.file.root is not None or n in tested}
    chosen: dict[str, Function] = {}
    for kernel in project.kernels:
        reach = [name for name in candidates if kernel in calls.kernels(name)]
        preferred = [name for name in reach if name in tested] or reach
        for name in preferred:
            if not calls.leads_to(name) & (set(preferred) - {name}):
                chosen[name] = candidates[name]
    # What one kernel leaves out, another may take: a caller of a chosen one adds nothing.
    covered = {
        name: {k for other in chosen if other != name for k in calls.kernels(other)}
        for name in chosen
    }
    return tuple(
        function
        for name, function in chosen.items()
        if not calls.leads_to(name) & set(chosen) or set(calls.kernels(name)) - covered[name]
    )


def _with_installed(project: Project) -> Project:
    """The project with what its tests import from installed packages that hold kernels."""
    found = {file.module: file for file in installed_sources(project)}
    kernels, skipped = kernels_of(found.values())
    if not kernels:
        return project
    return replace(
        project,
        files={**found, **project.files},
        kernels={**kernels, **project.kernels},
        skipped=(*project.skipped, *skipped),
    )


def _subject(name: str, entry: Function, project: Project, calls: Calls) -> DraftedSubject:
    tests = tests_of(entry, project)
    guess: Guess = guess_operation(entry.node)
    return DraftedSubject(
        name=name,
        entry=entry.name,
        signature=signature_of(entry.node),
        path=entry.file.shown,
        line=entry.node.lineno,
        kernels=calls.kernels(entry.name),
        guess=guess.operation,
        sure=guess.sure,
        why=guess.why,
        dtypes=dtypes_in(tests),
        tests=tuple(test.shown for test in tests),
    )


def _names_of(entries: Iterable[Function]) -> dict[str, str]:
    """Names of subjects: the function's, or with the module's in front where two share it."""
    entries = tuple(entries)
    uses = Counter(entry.qualname for entry in entries)
    names = {}
    for entry in entries:
        module = entry.file.module.replace(".", "_")
        name = entry.qualname if uses[entry.qualname] == 1 else f"{module}_{entry.qualname}"
        names[entry.name] = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return names


def _import_paths(root: Path, entries: Sequence[Function]) -> tuple[str, ...]:
    """Folders to import the entries from, relative to the root; none for installed packages."""
    folders = dict.fromkeys(e.file.root for e in entries if e.file.root is not None)
    return tuple(Path(os.path.relpath(folder, root)).as_posix() for folder in folders)


def _without_entry(project: Project, calls: Calls, entries: Sequence[Function]) -> Iterator[Skip]:
    """Kernels that no entry launches, with the reason as far as it is known."""
    reached = {kernel for entry in entries for kernel in calls.kernels(entry.name)}
    for kernel in tuple(reached):
        reached.update(project.kernels[kernel].callees)
    launchers: dict[str, list[Function]] = {}
    for function in calls.functions.values():
        for kernel in function.launches:
            launchers.setdefault(kernel, []).append(function)
    for found in project.kernels.values():
        installed = project.files[found.module].root is None
        if found.name not in reached and not installed:
            yield Skip(found.name, found.path, found.line, _why(found, launchers))


def _why(kernel: Kernel, launchers: Mapping[str, list[Function]]) -> str:
    known = launchers.get(kernel.name)
    if not known:
        return "no function launches it by name"
    first = known[0]
    by = f"launched by {first.qualname} ({first.file.shown}:{first.node.lineno})"
    if first.file.is_test and first.qualname.rpartition(".")[2].startswith("test_"):
        return f"{by} itself: write a function with tensor parameters around the launch"
    if "." in first.qualname:
        return f"{by}, a method that no public function with tensor parameters calls"
    return f"{by}, which no public function with tensor parameters leads to"


def _reasons(skipped: Sequence[Skip]) -> str:
    """The first reasons in a sentence's tail."""
    said = [f"{skip.name}: {skip.reason}" for skip in skipped[:5]]
    more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
    return f" ({'; '.join(said)}{more})" if said else ""
