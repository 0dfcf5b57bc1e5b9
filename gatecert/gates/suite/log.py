"""The end of what pytest printed, as far as it is about the user's code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import gatecert

_LINES = 10
_COLUMNS = 160
_SUMMARY = re.compile(r"=+ short test summary info =+")
_FRAME = re.compile(r"(?P<path>\S+\.py):\d+: in ")
_SOURCE = "    "


def log_end(log: str) -> list[str]:
    """The last lines before pytest's summary, which says the same again; none of gatecert's own
    frames, which the user cannot mend."""
    lines = _without_our_frames(_SUMMARY.split(log, maxsplit=1)[0].strip().splitlines())
    return [line.rstrip()[:_COLUMNS] for line in list(lines)[-_LINES:]]


def _without_our_frames(lines: Iterable[str]) -> Iterator[str]:
    """Short tracebacks give a frame one line with its place and indented ones of source."""
    ours = False
    for line in lines:
        frame = _FRAME.match(line)
        ours = _is_ours(frame["path"]) if frame else ours and line.startswith(_SOURCE)
        if not ours:
            yield line


def _is_ours(path: str) -> bool:
    """Tests run in a copy of the project: a relative path may lead nowhere, but it ends alike."""
    _, folder, inside = path.rpartition("gatecert/")
    return bool(folder) and (Path(gatecert.__file__).parent / inside).is_file()
