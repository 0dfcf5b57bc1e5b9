"""The text of a drafted configuration: TOML with a comment wherever a person must look."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gatecert.mutants.records import Skip

if TYPE_CHECKING:
    from gatecert.drafting.draft import DraftedSubject

_HEAD = """\
# Drafted by `gatecert init` from the text of {files}; nothing was imported or run.
# What follows a # is a guess to check, or a line to complete. docs/config.md has every key.
"""
_NO_TESTS = """\
# No test file that imports an entry was found. A gate of your own is one of these:
# [gate.tests]
# kind = "pytest"
# args = ["tests/test_softmax.py", "-q"]     # as on pytest's command line
#
# [gate.check]
# kind = "callable"
# callable = "package.module:function"       # called with the entry, returns True or False
"""
_ON_CUDA = """\
# {files} names "cuda": mutants run on Triton's interpreter, where tests need tensors on the
# CPU. Take the device from the environment, as in DEVICE = os.environ.get("DEVICE", "cuda"), and
# run `DEVICE=cpu gatecert certify --gate tests`.
"""
_REQUIRE = """\
# [require]                 # what the certified gate must reach; without it the exit code is 0
# kill_rate = 0.95
# adversaries = true
"""


def render(
    subjects: Sequence[DraftedSubject],
    import_paths: Sequence[str],
    tests: Sequence[str],
    skipped: Sequence[Skip],
    files: int,
    on_cuda: Sequence[str] = (),
) -> str:
    """The whole file, which loads as it is."""
    read = "1 Python file" if files == 1 else f"{files} Python files"
    parts = [_HEAD.format(files=read), _paths(import_paths)]
    parts += ["\n".join(_table(subject, bool(tests))) + "\n" for subject in subjects]
    parts.append(_tests(tests, on_cuda) if tests else _NO_TESTS)
    parts.append(_REQUIRE)
    if skipped:
        lines = (f"#   {_in_a_line(f'{skip.name}: {skip.reason}')}" for skip in skipped)
        parts.append("\n".join(["# Not in this draft:", *lines]) + "\n")
    return "\n".join(parts)


def _paths(import_paths: Sequence[str]) -> str:
    why = "put on sys.path, relative to this file" if import_paths else "the package is installed"
    return f"{_aligned(f'import_paths = {_array(import_paths)}', why)}\n"


def _table(subject: DraftedSubject, has_tests: bool) -> Iterator[str]:
    kernels = ", ".join(name.partition(":")[2] for name in subject.kernels)
    yield f"# {subject.signature} in {subject.path}, line {subject.line}; launches {kernels}"
    yield f"[subject.{subject.name}]"
    yield f"entry = {_string(subject.entry)}"
    yield from _operation(subject, has_tests)
    if subject.dtypes:
        said = "named in the tests: is it the whole contract?"
        yield _aligned(f"dtypes = {_array(subject.dtypes)}", said)
    else:
        said = "the tests name none; also float16, bfloat16?"
        yield _aligned('dtypes = ["float32"]', said)
    said = "add those that callers may pass"
    yield _aligned('# layouts = ["contiguous", "transposed", "row_padded"]', said)


def _operation(subject: DraftedSubject, has_tests: bool) -> Iterator[str]:
    if subject.guess and subject.sure:
        yield _aligned(f"operation = {_string(subject.guess)}", subject.why)
    elif subject.guess:
        yield _aligned(f"# operation = {_string(subject.guess)}", subject.why)
    else:
        yield _aligned('# operation = ""', f"{subject.why}: one of `gatecert operations`, or your")
        yield '# own reference, "package.module:function" (README.md)'
    if not subject.sure:
        judges = "only your own gate judges it" if has_tests else "nothing can judge it"
        yield f"# Until `operation` is filled in, {judges}."


def _tests(tests: Iterable[str], on_cuda: Sequence[str]) -> str:
    note = _ON_CUDA.format(files=_first_of(on_cuda)) if on_cuda else ""
    return f'{note}[gate.tests]\nkind = "pytest"\nargs = {_array([*tests, "-q"])}\n'


def _first_of(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} (of {len(files)} files that do)"


def _aligned(code: str, comment: str) -> str:
    return f"{code:<50}  # {comment}"


def _array(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_string, values))}]"


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _in_a_line(text: str) -> str:
    return " ".join(text.split())
