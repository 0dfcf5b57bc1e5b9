"""Plant one operator in a kernel and look at the lines that change."""

from __future__ import annotations

from gatecert.operators.records import Site
from gatecert.operators.registry import get_operator
from tests.operators import sample_kernels as samples


def sites(operator: str, source: str) -> list[tuple[Site, list[str]]]:
    """Scored sites with the lines that differ from the original."""
    kernel = samples.kernel(source)
    text = kernel.module.text
    found = []
    for site in get_operator(operator).find(kernel):
        mutant = text
        for edit in sorted(site.edits, reverse=True):
            mutant = mutant[: edit.start] + edit.text + mutant[edit.end :]
        pairs = zip(text.splitlines(), mutant.splitlines(), strict=True)
        if site.scored:
            found.append((site, [new.strip() for old, new in pairs if old != new]))
    return found


def lines(operator: str, source: str, variant: str | None = None) -> list[str]:
    """The changed lines of all scored mutants, of one variant only if it is given."""
    return [
        line
        for site, changed in sites(operator, source)
        for line in changed
        if variant is None or site.variant == variant
    ]


def kernel(*body: str, parameters: str = "x_ptr, w_ptr, y_ptr, N, scale, B: tl.constexpr") -> str:
    """A kernel with these lines."""
    inside = "\n".join(f"    {line}" for line in body)
    return f"@triton.jit\ndef k({parameters}):\n{inside}\n"
