"""Annotations and summary are what GitHub takes, and no more of them than it shows."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gatecert.campaign.records import Selection
from gatecert.certificate import Certificate, certify
from gatecert.certificate.ratchet import Held
from gatecert.reports.github import annotation_lines, escaped, escaped_property, step_summary
from tests.runs import mutant, run, subject_run, typical_run, verdict

ROOT = Path("/srv/project")


def surviving(count: int, **changes: object) -> Certificate:
    """A run in which that many mutants survive."""
    names = [f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(count)]
    fields = {"path": str(ROOT / "acme" / "kernels.py"), **changes}
    part = subject_run(
        mutants=tuple(mutant(name, **fields) for name in names),
        verdicts=tuple(verdict(name) for name in names),
    )
    return certify(run(part, root=str(ROOT)))


def lines(certificate: Certificate, workspace: Path = ROOT, **options: object) -> list[str]:
    return annotation_lines(certificate, root=ROOT, workspace=workspace, **options)  # type: ignore[arg-type]


def test_a_survivor_is_a_warning_at_its_line() -> None:
    (line,) = lines(surviving(1))
    head, _, message = line.removeprefix("::warning ").partition("::")
    assert head == "file=acme/kernels.py,line=7,title=oracle accepts a planted bug"
    assert message.startswith("drop-load-mask: the load has no mask (unexplained). ")
    assert "gatecert show softmax/k/drop-load-mask/0-aaaaaa" in message


def test_paths_are_relative_to_the_workspace_and_not_to_the_project() -> None:
    (line,) = lines(surviving(1), workspace=ROOT.parent)
    assert "file=project/acme/kernels.py," in line


def test_a_file_outside_the_workspace_is_not_named() -> None:
    (line,) = lines(surviving(1, path="/elsewhere/kernels.py", module="acme.kernels"))
    assert "file=" not in line and "line=" not in line


def test_ten_are_shown_and_a_last_line_counts_the_rest() -> None:
    assert len(lines(surviving(10))) == 10
    found = lines(surviving(13))
    assert sum(line.startswith("::warning ") for line in found) == 10
    assert found[10:] == ["::notice title=gatecert::3 more survivors: see the job's summary"]


def test_no_survivor_is_no_line() -> None:
    assert lines(surviving(0)) == []


def test_only_what_a_ratchet_does_not_know_is_annotated() -> None:
    found = lines(surviving(13), only={"softmax/k/drop-load-mask/12-aaaaaa"})
    assert len(found) == 1 and "12-aaaaaa" in found[0]
    assert lines(surviving(13), only=set()) == []


def test_text_cannot_end_the_command_or_begin_another() -> None:
    (line,) = lines(surviving(1, detail="100%\r\n::error::gone: a, b"))
    assert "\n" not in line and "\r" not in line
    assert "100%25%0D%0A::error::gone: a, b" in line
    assert escaped("a%0A\nb") == "a%250A%0Ab"
    assert escaped_property("a:b,c%\n") == "a%3Ab%2Cc%25%0A"


def test_the_summary_names_gates_survivors_and_their_diffs() -> None:
    text = step_summary(certify(typical_run()))
    assert text.startswith("## gatecert: gate `oracle`\n")
    assert "| weak" in text
    assert "softmax/k/wrong-constant.swap/1-bbbbbb" in text
    assert "+    x = tl.load(p)" in text
    assert text.count("<details>") == text.count("</details>") == 1


def test_the_summary_says_what_decided_the_exit_code() -> None:
    certificate = msgspec.structs.replace(surviving(2), unmet=("oracle: kill_rate is 0.0%",))
    new = "softmax/k/drop-load-mask/1-aaaaaa"
    text = step_summary(certificate, Held(new_survivors=(new,), gone=("x",)))
    assert "**not met:** oracle: kill_rate is 0.0%" in text
    assert "no longer planted (1): x" in text
    assert text.index(new) < text.index("softmax/k/drop-load-mask/0-aaaaaa")


def test_an_empty_diff_is_a_sentence_and_no_table() -> None:
    empty = run(selection=Selection(since="main", note="no file has changed"))
    assert step_summary(certify(empty)) == "## gatecert: gate `oracle`\n\nno file has changed\n"


@pytest.mark.parametrize("sign", ["x", "\u00e4"])
def test_a_long_summary_is_cut_at_githubs_limit_and_says_so(sign: str) -> None:
    text = step_summary(surviving(20, diff="+" + sign * 100_000 + "\n"))
    assert len(text.encode()) <= 1 << 20
    assert text.endswith("the whole report is report.md\n")
