"""Follow some lines of some files: do they run, and do their loads and stores have lanes off?"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Set
from types import FrameType
from typing import Any

from gatecert.lanes.interpreter.accesses import masks_shown


class LineTrace:
    """What became of the lines of interest, by real path."""

    def __init__(self, lines: Mapping[str, Set[int]]) -> None:
        self._lines = {os.path.realpath(path): frozenset(of) for path, of in lines.items()}
        self._paths: dict[str, Set[int] | None] = {}
        self.run = False
        self.masked: bool | None = None
        """Whether a lane of an access there was masked off; None before one with a mask."""

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Follow them in this thread."""
        before = sys.gettrace()
        sys.settrace(self._entered)
        try:
            with masks_shown(self._masked):
                yield
        finally:
            sys.settrace(before)

    def _entered(self, frame: FrameType, event: str, arg: Any) -> Any:
        lines = self._of(frame)
        if lines is None or self.run:
            return None

        def inside(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line" and frame.f_lineno in lines:
                self.run = True
                return None
            return inside

        return inside

    def _masked(self, whole: bool) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            lines = self._of(frame)
            if lines is not None:
                if frame.f_lineno in lines:
                    self.masked = bool(self.masked) or not whole
                return
            frame = frame.f_back

    def _of(self, frame: FrameType) -> Set[int] | None:
        name = frame.f_code.co_filename
        if name not in self._paths:
            self._paths[name] = self._lines.get(os.path.realpath(name))
        return self._paths[name]
