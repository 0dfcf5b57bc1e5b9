"""Progress goes to stderr, and a pipe sees few lines and no escape codes."""

from __future__ import annotations

import io

from gatecert.cli.progress import BarProgress, LineProgress, shown_progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_one_line_per_stage() -> None:
    stream = io.StringIO()
    with shown_progress(stream) as progress:
        assert isinstance(progress, LineProgress)
        progress.stage("judge", 300)
        for _ in range(300):
            progress.step()
    assert stream.getvalue() == "gatecert: judge: 300\n"


def test_a_long_stage_says_how_far_it_is() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, every_s=0.0)
    progress.stage("judge", 2)
    progress.step()
    progress.step()
    assert stream.getvalue().splitlines()[1:] == [
        "gatecert: judge: 1 of 2",
        "gatecert: judge: 2 of 2",
    ]


def test_each_stage_counts_from_zero() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, every_s=0.0)
    progress.stage("compile", 5)
    progress.step()
    progress.stage("judge", 2)
    progress.step()
    assert stream.getvalue().splitlines()[-1] == "gatecert: judge: 1 of 2"


def test_a_terminal_gets_a_bar_that_leaves_nothing_behind() -> None:
    stream = Terminal()
    with shown_progress(stream) as progress:
        assert isinstance(progress, BarProgress)
        progress.stage("judge", 3)
        progress.step()
    assert "judge" in stream.getvalue()
    assert "\n\n" not in stream.getvalue()
