"""Put what `make certify` printed into the README, cut where it is long.

    python benchmarks/readme_block.py

The text is what `gatecert report benchmarks/data/corpus.json` prints.
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from gatecert.reports.json import parse_json
from gatecert.reports.terminal import print_report

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CORPUS = ROOT / "benchmarks" / "data" / "corpus.json"
BEGIN, END = "<!-- output: begin -->\n", "<!-- output: end -->\n"
CUT = "[...]"


def block(report: str) -> str:
    """The head and the table by class, the gates, the first survivor, and the time."""
    lines = report.strip("\n").split("\n")
    parts = (
        lines[: _starts(lines, "Killed of scored, by subject")],
        lines[_starts(lines, "Gates") : _second_card(lines)],
        lines[_starts(lines, "Time") :],
    )
    return f"\n\n{CUT}\n\n".join("\n".join(part).strip("\n") for part in parts)


def with_block(readme: str, report: str) -> str:
    """The README with that text between its marks."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}```text\n{block(report)}\n```\n{END}{after}"


def report_of_corpus() -> str:
    """What is printed of the committed run of the corpus."""
    printed = io.StringIO()
    console = Console(file=printed, highlight=False, width=80)
    print_report(parse_json(CORPUS.read_text(encoding="utf-8")), console)
    return printed.getvalue()


def _starts(lines: list[str], beginning: str) -> int:
    return next(at for at, line in enumerate(lines) if line.startswith(beginning))


def _second_card(lines: list[str]) -> int:
    """Where the card of the second survivor starts, or what follows the only one."""
    first = _starts(lines, "Survivors of ") + 1
    after = (
        at for at, line in enumerate(lines[first + 1 :], first + 1) if line[:1] not in (" ", "")
    )
    return next(after)


def main() -> None:
    """Rewrite the README."""
    text = README.read_text(encoding="utf-8")
    README.write_text(with_block(text, report_of_corpus()), encoding="utf-8")


if __name__ == "__main__":
    main()
