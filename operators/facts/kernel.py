"""One kernel's syntax with positions: the input of every operator."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import (
    CodeRange,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    WhitespaceInclusivePositionProvider,
)

_LINE_ENDING = re.compile(r"\r\n?|\n")  # as Python has it: a form feed ends no line


@dataclass(frozen=True, slots=True)
class ModuleSyntax:
    """A parsed module; nodes of `tree` are the keys of the metadata."""

    text: str
    tree: cst.Module
    inner: Mapping[cst.CSTNode, CodeRange]
    outer: Mapping[cst.CSTNode, CodeRange]
    parents: Mapping[cst.CSTNode, cst.CSTNode]
    line_starts: tuple[int, ...]

    def _offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def _span(self, where: CodeRange) -> tuple[int, int]:
        return (
            self._offset(where.start.line, where.start.column),
            self._offset(where.end.line, where.end.column),
        )

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets of a node, its own parentheses included."""
        return self._span(self.outer[node])

    def inner_span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Character offsets of a node without its parentheses or leading white space."""
        return self._span(self.inner[node])

    def source(self, node: cst.CSTNode) -> str:
        """The node's text, its own parentheses included."""
        start, end = self.span(node)
        return self.text[start:end]

    def line(self, node: cst.CSTNode) -> int:
        """The 1-based line on which the node starts."""
        return self.inner[node].start.line


@dataclass(frozen=True, slots=True)
class KernelSyntax:
    """One `@triton.jit` function inside its module."""

    module: ModuleSyntax
    function: cst.FunctionDef
    qualname: str
    language_names: frozenset[str] = field(default_factory=lambda: frozenset({"tl"}))
    """Names under which `triton.language` is known in the module (`tl`, `triton.language`)."""
    imported: Mapping[str, str] = field(default_factory=dict)
    """Local names of the module, and the absolute names that they stand for."""


@functools.lru_cache(maxsize=8)
def parse_module(text: str) -> ModuleSyntax:
    """Parse a module's text, once for all its kernels.

    Raises `libcst.ParserSyntaxError` where it is not Python.
    """
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    starts = [0]
    starts += [ending.end() for ending in _LINE_ENDING.finditer(text)]
    return ModuleSyntax(
        text=text,
        tree=wrapper.module,
        inner=wrapper.resolve(PositionProvider),
        outer=wrapper.resolve(WhitespaceInclusivePositionProvider),
        parents=wrapper.resolve(ParentNodeProvider),
        line_starts=tuple(starts),
    )
