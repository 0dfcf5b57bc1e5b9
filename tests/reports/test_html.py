"""Claims about the page of HTML."""

from __future__ import annotations

from html.parser import HTMLParser

from gatecert.certificate import certify
from gatecert.reports.html import render_html
from tests.reports.test_why import EVIDENCE, ID
from tests.runs import mutant, run, subject_run, verdict

DIFF = "@@ -7 +7 @@\n-    x = a < b && c\n+    x = <script>alert(1)</script>\n"


def page(limits: dict[str, dict[str, float | None]] | None = None) -> str:
    part = subject_run(
        mutants=(mutant(ID, diff=DIFF, detail="<b>bold</b>"),),
        verdicts=(verdict("softmax/original", bits="b"), verdict(ID, bits="b")),
        explanations=(EVIDENCE,),
    )
    return render_html(certify(run(part)), limits)


class Tags(HTMLParser):
    """Every tag that is opened, and those that are left open."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "dt", "dd"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("dt", "dd"):
            assert self.open.pop() == tag


def test_what_a_kernel_says_is_text_and_no_tag() -> None:
    text = page()
    tags = Tags()
    tags.feed(text)
    assert not {"script", "b", "link", "img"} & tags.seen
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;bold" in text


def test_all_tags_are_closed_in_their_order() -> None:
    tags = Tags()
    tags.feed(page())
    assert tags.open == []


def test_a_card_holds_reason_verdicts_evidence_and_diff() -> None:
    text = page()
    assert '<span class="cause">unobserved</span>' in text
    assert "oracle: survived" in text
    assert "2 of 6 launches left other bits" in text
    assert '<span class="removed">-    x = a &lt; b &amp;&amp; c</span>' in text


def test_limits_are_told_by_dtype_where_they_are_known() -> None:
    text = page({"softmax": {"float32": 1e-5, "bfloat16": None}})
    assert "smallest relative error seen in float32: 1e-05" in text
    assert "in bfloat16: no error that was planted" in text
    assert "smallest relative error" not in page()
