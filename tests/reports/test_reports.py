"""Reports say what the certificate holds, and are quiet where nobody looks."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import msgspec
import pytest
from rich.console import Console

from gatecert.campaign.records import Selection
from gatecert.certificate import Certificate, certify
from gatecert.certificate.records import Counts
from gatecert.gates.evidence import Compared, Evidence
from gatecert.lanes.records import Finding, FindingKind
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.reports import tables
from gatecert.reports.json import parse_json, render_json
from gatecert.reports.markdown import render_markdown
from gatecert.reports.terminal import print_report
from gatecert.statistics import Rate
from tests.runs import comparison, mutant, run, subject_run, typical_run, verdict


@pytest.fixture
def certificate() -> Certificate:
    return certify(typical_run())


def terminal(certificate: Certificate, **console: object) -> str:
    stream = io.StringIO()
    print_report(certificate, Console(file=stream, width=400, **console))  # type: ignore[arg-type]
    return stream.getvalue()


RENDERERS = [terminal, render_markdown]


def test_gates_stand_side_by_side_by_bug_class(certificate: Certificate) -> None:
    table = tables.class_table(certificate)
    assert table.columns == ("bug class", "mutants", "left out", "oracle", "weak")
    assert table.rows == (
        ("constant", "1", "0", "0/1 (0.0%)", "0/1 (0.0%)"),
        ("formula-term", "1", "1", "-", "-"),
        ("mask-missing", "2", "1", "1/1 (100.0%)", "0/1 (0.0%)"),
        ("all", "4", "2", "1/2 (50.0%)", "0/2 (0.0%)"),
    )


def uneven_run() -> Certificate:
    """Two gates that answer differently, and a proof that holds under the first alone."""
    names = [f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(6)]
    said = ("rejected", "crashed", "timeout", "error", "accepted", "accepted")
    others = ("accepted", "rejected", "crashed", "crashed", "rejected", "accepted")
    last = {"uncompared": True}
    part = subject_run(
        mutants=tuple(map(mutant, names)),
        comparisons=(comparison(names[-1], "equivalent"),),
        verdicts=(
            *(verdict(n, o) for n, o in zip(names, said, strict=True)),
            *(
                verdict(n, o, gate="weak", **(last if n == names[-1] else {}))
                for n, o in zip(names, others, strict=True)
            ),
        ),
    )
    return certify(run(part, gates=("oracle", "weak")))


def test_the_numbers_of_every_row_add_up_to_its_mutants() -> None:
    certificate = uneven_run()
    for table in (tables.class_table(certificate), tables.subject_table(certificate)):
        for _, planted, left_out, *gates in table.rows:
            for cell in gates:
                scored = [int(n) for n in re.findall(r"/(\d+) ", cell)]
                others = [int(n) for n in re.findall(r", (\d+) [a-z]", cell)]
                assert int(planted) == int(left_out) + sum(scored) + sum(others), cell
    oracle, weak = tables.class_table(certificate).rows[-1][-2:]
    assert oracle == "1/2 (50.0%), 1 crashed, 1 timeout, 1 equivalent, 1 inconclusive"
    assert weak == "2/4 (50.0%), 2 crashed"


@pytest.mark.parametrize("render", RENDERERS)
def test_a_reader_is_told_how_the_numbers_add_up(
    render: Callable[[Certificate], str], certificate: Certificate
) -> None:
    said = "mutants = left out (unviable, equivalent, duplicate, not observable, ignored) + scored"
    assert said in render(certificate)


@pytest.mark.parametrize("render", RENDERERS)
def test_a_reader_is_told_what_the_columns_on_controls_mean(
    render: Callable[[Certificate], str], certificate: Certificate
) -> None:
    text = render(certificate)
    assert "distinct = controls with other bits than the original's" in text
    assert "upper bound = the share of kernels whose controls it may reject, at 95%" in text


@pytest.mark.parametrize("render", RENDERERS)
def test_mutants_by_name_have_no_figures_of_what_was_not_run(
    render: Callable[[Certificate], str],
) -> None:
    chosen = msgspec.structs.replace(typical_run(), selection=Selection(only=1))
    certificate = certify(chosen)
    assert tables.gate_table(certificate).columns[:2] == ("gate", "kill rate [95%]")
    text = render(certificate)
    assert "only 1 mutant by name, without benign rewrites and adversaries" in text
    assert "adversaries accepted" not in text and "upper bound" not in text


@pytest.mark.parametrize("render", RENDERERS)
def test_time_by_the_clock_stands_apart_from_what_jobs_add_up_to(
    render: Callable[[Certificate], str],
) -> None:
    spent = {
        "judge": 7.0,
        "compile": 2.0,
        "total": 10.0,
        "processes: kernels": 20.0,
        "inputs and references": 1.5,
    }
    text = render(certify(msgspec.structs.replace(typical_run(), timings_s=spent)))
    assert "10.0 s by the clock: compile 2.0 s, judge 7.0 s, the rest 1.0 s" in text
    assert (
        "added up over all jobs while judging: kernels 20.0 s, inputs and references 1.5 s" in text
    )


def test_times_of_shards_are_said_to_be_added_up() -> None:
    said = tables.timing_lines({"shards: judge": 4.0, "shards: processes: kernels": 9.0})
    assert said == ["added up over shards: judge 4.0 s, kernels 9.0 s"]


def test_the_gate_table_names_wrong_rejections_and_wrong_acceptances(
    certificate: Certificate,
) -> None:
    oracle, weak = tables.gate_table(certificate).rows
    assert oracle[:5] == ("oracle", "0 of 2", "1", "97.5%", "0 of 2")
    assert weak[:5] == ("weak", "1 of 2", "1", "100.0%", "1 of 2")


@pytest.mark.parametrize("render", RENDERERS)
def test_a_survivor_is_shown_with_diff_and_error_against_allowance(
    render: Callable[[Certificate], str], certificate: Certificate
) -> None:
    text = render(certificate)
    assert "softmax/k/wrong-constant.swap/1-bbbbbb" in text
    assert "error 0.00015 against allowance 0.0002 at out[0, 3]" in text
    assert "+    x = tl.load(p)" in text
    assert "softmax/float32/B=1,N=33/contiguous/normal/seed=0" in text


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize(
    "line",
    [
        "weak: softmax/benign/blocks: rejected  3 of 9 differ",
        "weak: softmax/adversary/zeros",
        "softmax/k/drop-store-mask/1-cccccc: only device would show it",
        "acme.kernels:old: not launched",
        "gelu: all of it: importing acme.gelu raised ImportError",
        "compile 3.0 s, judge 12.5 s",
    ],
)
def test_nothing_that_a_reader_must_know_is_left_out(
    render: Callable[[Certificate], str], line: str, certificate: Certificate
) -> None:
    assert line in render(certificate)


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("outcome", ["crashed", "timeout"])
def test_crashes_and_timeouts_are_named(render: Callable[[Certificate], str], outcome: str) -> None:
    planted = mutant("softmax/k/drop-load-mask/1-aaaaaa")
    said = verdict(planted.id, outcome, detail="died of signal 11")
    text = render(certify(run(subject_run(mutants=(planted,), verdicts=(said,)))))
    assert f"{planted.id}: {outcome}: died of signal 11" in text


def watched_run(*names: str) -> Certificate:
    """Two gates: `tests` swallows exceptions, on each of the subjects of these names."""
    evidence = Evidence(entry_calls=3, entry_raised=3)
    parts = [
        subject_run(
            name,
            mutants=(mutant(f"{name}/k/drop-load-mask/1-aaaaaa"),),
            adversaries=(Candidate(f"{name}/adversary/raises", CandidateKind.ADVERSARY, name),),
            verdicts=(
                verdict(f"{name}/original", gate="tests", evidence=Evidence(entry_calls=3)),
                verdict(f"{name}/adversary/raises", gate="tests", evidence=evidence),
                verdict(f"{name}/k/drop-load-mask/1-aaaaaa", gate="tests"),
            ),
        )
        for name in names
    ]
    return certify(run(*parts, gate="tests", gates=("tests", "oracle")))


@pytest.mark.parametrize("render", RENDERERS)
def test_what_a_gate_cannot_see_stands_before_its_survivors(
    render: Callable[[Certificate], str],
) -> None:
    text = render(watched_run("softmax"))
    title = "What tests cannot see, from evidence (1)"
    assert text.index(title) < text.index("Survivors of")
    assert "swallowed_exception: The kernel or a comparison raised" in text
    assert "the entry raised RuntimeError 3 times, and the gate accepted it" in text
    assert "remedy:  Let exceptions out" in text
    assert "What oracle cannot see" not in text
    assert "tests: softmax/adversary/raises (by swallowed_exception)" in text


@pytest.mark.parametrize("render", RENDERERS)
def test_weaknesses_of_several_subjects_are_told_apart(
    render: Callable[[Certificate], str],
) -> None:
    text = render(watched_run("softmax", "gelu"))
    assert "softmax: swallowed_exception: " in text
    assert "gelu: swallowed_exception: " in text


def test_weaknesses_are_keys_of_the_certificate() -> None:
    document = json.loads(render_json(watched_run("softmax")))
    (weakness,) = document["weaknesses"]
    assert weakness["weakness"] == "swallowed_exception"
    assert weakness["subject"] == "softmax"
    assert document["adversaries"]["because"] == {
        "softmax/adversary/raises": ["swallowed_exception"]
    }
    assert document["beside"][0]["weaknesses"] == []


def test_a_pipe_gets_no_escape_codes(certificate: Certificate) -> None:
    assert "\x1b" not in terminal(certificate)
    assert "\x1b[" in terminal(certificate, force_terminal=True)


def test_brackets_in_source_are_text_and_no_markup() -> None:
    planted = mutant("softmax/k/drop-load-mask/1-aaaaaa", diff="-    y = x[red]\n+    y = [/b]\n")
    part = subject_run(mutants=(planted,), verdicts=(verdict(planted.id),))
    text = terminal(certify(run(part)))
    assert "y = x[red]" in text
    assert "y = [/b]" in text


def test_a_long_list_is_cut_on_the_terminal_and_whole_in_markdown() -> None:
    names = [f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(60)]
    part = subject_run(
        mutants=tuple(mutant(name) for name in names),
        verdicts=tuple(verdict(name) for name in names),
    )
    certificate = certify(run(part))
    assert "... and 20 more in the report" in terminal(certificate)
    assert all(f"### `{name}`" in render_markdown(certificate) for name in names)


def test_an_interrupted_run_says_so(certificate: Certificate) -> None:
    partial = msgspec.structs.replace(certificate, interrupted=True)
    assert "interrupted" in terminal(partial)
    assert "interrupted" in render_markdown(partial)
    assert "interrupted" not in terminal(certificate)


def test_json_is_one_document_that_reads_back(certificate: Certificate) -> None:
    text = render_json(certificate)
    assert json.loads(text)["kill_rate"]["n"] == 2
    assert parse_json(text) == certificate


def test_unknown_figures_are_a_dash_and_never_a_number() -> None:
    assert tables.percent(None) == "-"
    assert tables.interval(Rate(None, None, None, 0)) == "-"
    assert tables.share(Counts()) == "-"
    assert tables.share(Counts(timeout=3)) == "3 timeout"
    assert tables.interval(Rate(0.5, None, None, 2)) == "50.0% n=2"
    assert tables.interval(Rate(0.5, 0.25, 0.75, 8)) == "50.0% [25.0, 75.0] n=8"


def doubtful_run(*, both: bool) -> Certificate:
    """The oracle rejects the original of one of two subjects, or of both."""
    ids = {name: f"{name}/k/drop-load-mask/1-aaaaaa" for name in ("softmax", "gelu")}
    parts = [
        subject_run(
            name,
            mutants=(mutant(planted),),
            verdicts=(
                verdict(f"{name}/original", "rejected" if both or name == "gelu" else "accepted"),
                verdict(planted, "rejected"),
                verdict(f"{name}/original", gate="weak"),
                verdict(planted, "rejected", gate="weak"),
            ),
        )
        for name, planted in ids.items()
    ]
    return certify(run(*parts, gates=("oracle", "weak")))


def test_kills_of_a_gate_that_rejects_the_original_are_no_figure() -> None:
    found = tables.subject_table(doubtful_run(both=False))
    assert found.columns[-2:] == ("oracle*", "weak")
    assert {row[0]: row[-2:] for row in found.rows} == {
        "gelu": ("-", "1/1 (100.0%)"),
        "softmax": ("1/1 (100.0%)", "1/1 (100.0%)"),
        "all": ("2/2 (100.0%)", "2/2 (100.0%)"),
    }
    assert found.note == "oracle* rejects the original of gelu: its kills there prove nothing"


@pytest.mark.parametrize("render", RENDERERS)
def test_a_gate_that_rejects_every_original_has_no_rate(
    render: Callable[[Certificate], str],
) -> None:
    certificate = doubtful_run(both=True)
    for table in (tables.class_table(certificate), tables.subject_table(certificate)):
        assert {row[-2:] for row in table.rows} >= {("-", "2/2 (100.0%)")}
    oracle, weak = tables.gate_table(certificate).rows
    assert oracle[0] == "oracle*" and oracle[-3:] == ("-", "-", "-")
    assert weak[-1] == "100.0%"
    assert "oracle* rejects the original of softmax, gelu: its kills" in render(certificate)


@pytest.mark.parametrize("render", RENDERERS)
def test_a_fault_that_the_gate_passed_over_does_not_read_as_a_crash(
    render: Callable[[Certificate], str],
) -> None:
    names = [f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(2)]
    found = Finding(FindingKind.LOAD_OUT_OF_BOUNDS, "acme.kernels:k", "x_ptr", 3, 64)
    part = subject_run(
        mutants=tuple(map(mutant, names)),
        verdicts=(
            verdict(names[0], gate="tests", findings=(found,)),
            verdict(names[1], "crashed", gate="tests", detail="died of signal 11"),
        ),
    )
    text = render(certify(run(part, gate="tests", gates=("tests",))))
    assert "Died, timed out, or touched memory out of bounds unreported by tests (2)" in text
    assert f"{names[0]}: touched memory out of bounds (load, 3 lanes on x_ptr), and the" in text
    assert f"{names[1]}: crashed: died of signal 11" in text


@pytest.mark.parametrize("render", RENDERERS)
def test_what_several_survivors_share_of_the_original_is_told_once(
    render: Callable[[Certificate], str],
) -> None:
    names = [f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(3)]
    evidence = Evidence(compared=(Compared("torch.allclose", True),))
    said = {"gate": "tests", "bits": ""}
    part = subject_run(
        mutants=tuple(map(mutant, names)),
        verdicts=(
            verdict("softmax/original", evidence=evidence, **said),
            *(verdict(name, detail="2 passed", **said) for name in names),
        ),
    )
    certificate = certify(run(part, gate="tests", gates=("tests",)))
    text = render(certificate)
    assert text.count("on the original: compares by torch.allclose, 1 time") == 1
    assert text.count("the verdict on it: 2 passed") == 3
    assert all(len(survivor.known) == 2 for survivor in certificate.survivors)
