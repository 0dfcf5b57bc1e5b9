"""What tests import, and what dtypes they speak of."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gatecert.drafting.calls import Function, resolve_export
from gatecert.drafting.project import Project, SourceFile
from gatecert.locating import find_source
from gatecert.mutants.names import module_names
from gatecert.subjects import DTYPES

_NOT_UNDER_TEST = frozenset({"triton", "torch", "numpy", "pytest", "gatecert", "scipy"})
_OTHER_NAMES = {"half": "float16", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_MOST_REEXPORTS = 4
_CUDA = re.compile(r"""["']cuda(?::\d+)?["']|\.cuda\(""")
_FROM_ENVIRONMENT = re.compile(r"\bos\.environ\b|\bgetenv\b")


def tests_of(entry: Function, project: Project) -> tuple[SourceFile, ...]:
    """Test modules that pytest collects by the usual names and that import the function, its
    module, or a package above that whose text names the function; its own, where it is one."""
    return tuple(test for test in project.tests if _collected(test) and _uses(test, entry, project))


def dtypes_in(tests: Iterable[SourceFile]) -> tuple[str, ...]:
    """The formats that the tests name, in the usual order."""
    words = {word for test in tests for word in re.findall(r"\w+", test.text)}
    found = {_OTHER_NAMES.get(word, word) for word in words}
    return tuple(dtype for dtype in DTYPES if dtype in found)


def on_cuda(tests: Iterable[SourceFile]) -> tuple[str, ...]:
    """Tests that name the device "cuda" in a string or call `.cuda()`, and no environment variable
    from which it might be taken."""
    return tuple(
        test.shown
        for test in tests
        if _CUDA.search(test.text) and not _FROM_ENVIRONMENT.search(test.text)
    )


def installed_sources(project: Project) -> Iterator[SourceFile]:
    """Modules of installed packages that the tests import functions from, found without importing
    them; where a package re-exports a function, the module that defines it."""
    seen: set[str] = set()
    for test in project.tests:
        for name in test.names.imported.values():
            top = name.partition(".")[0]
            if top in _NOT_UNDER_TEST or top in sys.stdlib_module_names or not top:
                continue
            if any(m == top or m.startswith(f"{top}.") for m in project.files):
                continue
            yield from _installed(name, seen)


def _installed(name: str, seen: set[str]) -> Iterator[SourceFile]:
    for _ in range(_MOST_REEXPORTS):
        module, _, attribute = name.rpartition(".")
        path = find_source(module) if module else None
        if path is None or module in seen:
            return
        seen.add(module)
        file = _read(module, path)
        if file is None:
            return
        yield file
        if attribute not in file.names.imported:
            return
        name = file.names.imported[attribute]


def _read(module: str, path: Path) -> SourceFile | None:
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
        return None
    names = module_names(module, path.name == "__init__.py", tree)
    shown = f"{module} (installed)"
    return SourceFile(path, shown, module, None, text, tree, names, is_test=False)


def _collected(test: SourceFile) -> bool:
    return test.path.name.startswith("test_") or test.path.stem.endswith("_test")


def _uses(test: SourceFile, entry: Function, project: Project) -> bool:
    if test is entry.file:
        return True
    module, attribute = entry.file.module, entry.qualname
    for home in test.names.imported.values():
        found = resolve_export(home, project)
        if found in (module, f"{module}.{attribute}"):
            return True
        above = module.startswith((f"{found}.", f"{home}."))
        if above and re.search(rf"\b{re.escape(attribute)}\b", test.text):
            return True
    return False
