"""Plant operators in a kernel or a launcher: one mutant per site."""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gatecert.errors import InternalError
from gatecert.mutants.discover import kernel_syntax
from gatecert.mutants.ids import IdMaker
from gatecert.mutants.launchers import Sources, launcher_syntax
from gatecert.mutants.records import Kernel, Launcher, Mutant
from gatecert.operators.facts.kernel import KernelSyntax, parse_module
from gatecert.operators.facts.launcher import LauncherSyntax
from gatecert.operators.records import Edit, Operator, Site

_CONTEXT_LINES = 2


def plant(subject: str, kernel: Kernel, text: str, operators: Iterable[Operator]) -> list[Mutant]:
    """Every mutant of one kernel, by operator and then by place; `text` is its module's.

    Two sites that give the same text are one mutant: the first operator's, which names the
    others in `also`.

    Raises:
        InternalError: an operator failed, or gave edits that overlap, leave the kernel, change
            nothing or do not parse.
    """
    return _plant(subject, kernel, kernel_syntax(parse_module(text), kernel.qualname), operators)


def plant_in_launcher(
    subject: str, launcher: Launcher, sources: Sources, operators: Iterable[Operator]
) -> list[Mutant]:
    """Every mutant of one launcher; order and errors as `plant`."""
    return _plant(subject, launcher, launcher_syntax(launcher, sources), operators)


def _plant(
    subject: str,
    function: Kernel | Launcher,
    syntax: KernelSyntax | LauncherSyntax,
    operators: Iterable[Operator],
) -> list[Mutant]:
    text = syntax.module.text
    ids = IdMaker(subject, syntax)
    source_sha256 = hashlib.sha256(text.encode()).hexdigest()
    planted: dict[str, Mutant] = {}
    for operator in operators:
        for site in _sites(operator, syntax):
            mutated = _mutate(operator, site, syntax)
            mutant_id = ids.name(operator.name, site)
            first = planted.get(mutated)
            if first is not None:
                also = dict.fromkeys((*first.also, operator.name))
                also.pop(first.operator, None)
                planted[mutated] = msgspec.structs.replace(first, also=tuple(also))
                continue
            planted[mutated] = Mutant(
                id=mutant_id,
                subject=subject,
                operator=operator.name,
                bug_class=operator.bug_class,
                variant=site.variant,
                scored=site.scored,
                module=function.module,
                kernel=function.qualname,
                path=function.path,
                line=site.line,
                detail=site.detail,
                diff=unified_diff(function.module, text, mutated),
                edits=tuple(sorted(site.edits)),
                source_sha256=source_sha256,
                observable_by=site.observable_by,
                reveal=site.reveal,
                launches=function.launches if isinstance(function, Launcher) else (),
            )
    return list(planted.values())


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with every edit made; offsets are those of the text as given.

    Raises:
        InternalError: edits overlap or lie outside the text.
    """
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits):
        if not position <= edit.start <= edit.end <= len(text):
            raise InternalError(f"edits overlap or leave the text at offset {edit.start}")
        pieces += (text[position : edit.start], edit.text)
        position = edit.end
    return "".join(pieces) + text[position:]


def overlay_of(mutant: Mutant, texts: Mapping[str, str]) -> dict[str, str]:
    """The mutant's overlay: its file and the whole mutated text.

    Raises:
        InternalError: the file's text is not the one that the mutant was planted in.
    """
    text = texts[mutant.path]
    if hashlib.sha256(text.encode()).hexdigest() != mutant.source_sha256:
        raise InternalError(f"{mutant.path} changed since {mutant.id} was planted; run again")
    return {mutant.path: apply_edits(text, mutant.edits)}


def unified_diff(module: str, before: str, after: str) -> str:
    """A unified diff of a module's text, headed by the module's name as a path."""
    name = module.replace(".", "/") + ".py"
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", "", "",
        n=_CONTEXT_LINES, lineterm="",
    )  # fmt: skip
    return "\n".join(lines) + "\n"


def headed(diff: str, name: str) -> str:
    """The diff with another file's name in its head."""
    _, _, rest = diff.partition("\n@@")
    return f"--- a/{name}\n+++ b/{name}\n@@{rest}" if rest else diff


def _sites(operator: Operator, syntax: KernelSyntax | LauncherSyntax) -> list[Site]:
    found: Iterable[Site] = ()
    try:
        if isinstance(syntax, KernelSyntax):
            found = operator.find(syntax)
        elif operator.find_in_launcher is not None:
            found = operator.find_in_launcher(syntax)
        return sorted(found, key=lambda site: sorted(site.edits))
    except Exception as error:
        raise InternalError(
            f"operator {operator.name} failed on {syntax.qualname}: {type(error).__name__}: {error}"
        ) from error


def _mutate(operator: Operator, site: Site, syntax: KernelSyntax | LauncherSyntax) -> str:
    text = syntax.module.text
    where = f"operator {operator.name} at {syntax.qualname}, line {site.line}"
    start, end = syntax.module.span(syntax.function)
    if not all(start <= edit.start and edit.end <= end for edit in site.edits):
        raise InternalError(f"{where}: an edit leaves the function")
    mutated = apply_edits(text, site.edits)
    if mutated == text:
        raise InternalError(f"{where}: nothing changes")
    try:
        ast.parse(mutated)
    except SyntaxError as error:
        raise InternalError(f"{where}: the mutated text does not parse: {error.msg}") from error
    return mutated
