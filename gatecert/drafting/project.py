"""The Python files of a repository, read and parsed."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gatecert.drafting.layout import declared_roots, is_test, place
from gatecert.mutants.discover import find_kernels, link_callees
from gatecert.mutants.names import ModuleNames, module_names
from gatecert.mutants.records import Kernel, Skip
from gatecert.store.database import DATABASE

_NOT_CODE = frozenset({"__pycache__", "node_modules", "build", "dist", "site-packages"})
_LARGEST_BYTES = 1 << 20
_MOST_FILES = 5000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A module. `root` is the folder to import it from; None for an installed package."""

    path: Path
    shown: str
    """The path as people read it: relative to the repository."""
    module: str
    root: Path | None
    text: str
    tree: ast.Module
    names: ModuleNames
    is_test: bool


@dataclass(frozen=True, slots=True)
class Project:
    """What was read: modules by name, the kernels in them by `module:qualname`, and what was left
    out and why. `namesakes` are modules of a name that another file has already: test modules of
    several folders, mostly."""

    root: Path
    files: Mapping[str, SourceFile]
    kernels: Mapping[str, Kernel]
    skipped: tuple[Skip, ...]
    namesakes: tuple[SourceFile, ...] = ()

    @property
    def tests(self) -> tuple[SourceFile, ...]:
        """The test modules, by path."""
        tests = (file for file in (*self.files.values(), *self.namesakes) if file.is_test)
        return tuple(sorted(tests, key=lambda file: file.shown))


def read_project(root: Path) -> Project:
    """Read every Python file below a folder that is nobody else's: no hidden folder, virtual
    environment, build output or folder of results."""
    root = root.resolve()
    parsed: list[tuple[Path, str, ast.Module]] = []
    skipped: list[Skip] = []
    for number, path in enumerate(_python_files(root)):
        shown = path.relative_to(root).as_posix()
        if number >= _MOST_FILES:
            skipped.append(Skip(shown, shown, 0, f"not read: only {_MOST_FILES} files are"))
            break
        try:
            if path.stat().st_size > _LARGEST_BYTES:
                skipped.append(Skip(shown, shown, 0, "not read: it is larger than 1 MiB"))
                continue
            text = path.read_text(encoding="utf-8")
            parsed.append((path, text, ast.parse(text)))
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
            reason = f"not read: {error.msg if isinstance(error, SyntaxError) else error}"
            skipped.append(Skip(shown, shown, getattr(error, "lineno", 0) or 0, reason))
    declared = declared_roots(root)
    imported = {name for _, _, tree in parsed for name in _imported(tree)}
    files: dict[str, SourceFile] = {}
    namesakes: list[SourceFile] = []
    for path, text, tree in parsed:
        folder, module = place(path, root, declared, imported)
        shown = path.relative_to(root).as_posix()
        names = module_names(module, path.name == "__init__.py", tree)
        file = SourceFile(
            path, shown, module, folder, text, tree, names, is_test(path.relative_to(root))
        )
        if files.setdefault(module, file) is not file:
            namesakes.append(file)
            if "triton.jit" in text:
                reason = f"{files[module].shown} has the same module name, {module!r}"
                skipped.append(Skip(shown, shown, 0, reason))
    kernels, no_kernels = kernels_of(files.values())
    return Project(root, files, kernels, (*skipped, *no_kernels), tuple(namesakes))


def kernels_of(files: Iterable[SourceFile]) -> tuple[dict[str, Kernel], list[Skip]]:
    """Kernels of some files by name, linked to those they call, and what only looks like one."""
    kernels: list[Kernel] = []
    skipped: list[Skip] = []
    for file in files:
        if "triton" in file.text or "gluon" in file.text:
            found, not_taken = find_kernels(file.module, file.shown, file.text)
            kernels += found
            skipped += not_taken
    return {kernel.name: kernel for kernel in link_callees(kernels)}, skipped


def _python_files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if _is_ours(here / name))
        yield from (here / name for name in sorted(names) if name.endswith(".py"))


def _is_ours(folder: Path) -> bool:
    foreign = folder.name in _NOT_CODE or folder.name.startswith(".")
    foreign = foreign or folder.name.endswith(".egg-info") or folder.is_symlink()
    return not (foreign or (folder / "pyvenv.cfg").exists() or (folder / DATABASE).exists())


def _imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names that a module imports absolutely: `a.b` and, of `from a.b import c`, also
    `a.b.c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
