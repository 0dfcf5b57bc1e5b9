"""`runs` and `report` read a store, whatever state its runs are in, and run nothing."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from gatecert.certificate import certify
from gatecert.cli import main
from gatecert.errors import ExitCode
from gatecert.reports.json import render_json
from gatecert.reports.markdown import render_markdown
from gatecert.store import Scope, owned, recording
from tests.gatecert.store.records import ALL, KILLED, ORIGINAL, PARTS, SCOPE, VERDICT, planned


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run r1, an unfinished run r2, and a run r3 that planned nothing."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "gatecert-out"
    for number, scope in enumerate((SCOPE, msgspec.structs.replace(SCOPE, seed=1))):
        with recording(folder, scope) as record:
            record.plan(planned(), PARTS, "f")
            record.expect(ALL)
            record.keep(f"key-0-{number}" if number else "key-0", ORIGINAL)
            if not number:
                record.keep("key-1", VERDICT)
                record.finish()
    with recording(folder, msgspec.structs.replace(SCOPE, quick=True)):
        pass
    return folder


def test_runs_list_has_a_line_per_run(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "list"]) == ExitCode.MET
    first, second, third = capsys.readouterr().out.splitlines()[2:]
    assert first.split()[:2] == ["r1", "finished"] and "2 of 3" in first
    assert second.split()[:2] == ["r2", "unfinished"] and "--seed 1" in second
    assert third.split()[0] == "r3" and " - " in third


def test_runs_list_as_json_is_one_document(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "list", "--json"])
    runs = json.loads(capsys.readouterr().out)
    assert [(r["id"], r["state"], r["verdicts"], r["tasks"]) for r in runs] == [
        ("r1", "finished", 2, 3),
        ("r2", "unfinished", 1, 3),
        ("r3", "unfinished", 0, 0),
    ]


def test_runs_show_says_what_gates_said(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "show", "r1"]) == ExitCode.MET
    assert "accepted 1, rejected 1" in capsys.readouterr().out
    main(["runs", "show", "r1", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert shown["outcomes"] == {"oracle": {"accepted": 1, "rejected": 1}}
    assert shown["planned_subjects"] == ["softmax"]
    assert main(["runs", "show", "r3"]) == ExitCode.MET
    assert "before anything was planted" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["runs", "show"], ["report"], ["runs", "rm"]])
def test_an_unknown_run_is_a_usage_error(
    out: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "r9"]) == ExitCode.USAGE
    assert "no run 'r9'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["runs", "list"], ["report"], ["runs", "rm", "r1"]])
def test_a_folder_without_a_store_is_a_usage_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == ExitCode.USAGE
    assert "no such file" in capsys.readouterr().err
    assert not (tmp_path / "gatecert-out").exists()


def test_runs_rm_takes_the_files_named_after_the_run(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("certificate-r2.json", "report-r2.md", "certificate.json", "certificate-r1.json"):
        (out / name).write_text("")
    assert main(["runs", "rm", "r2", "r3", "--json"]) == ExitCode.MET
    assert json.loads(capsys.readouterr().out) == {"removed": ["r2", "r3"]}
    assert sorted(p.name for p in out.glob("*.[jm]*")) == [
        "certificate-r1.json",
        "certificate.json",
    ]
    main(["runs", "list", "--json"])
    assert [run["id"] for run in json.loads(capsys.readouterr().out)] == ["r1"]


def test_while_a_run_is_written_others_read_and_none_removes(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with owned(out, "certify"):
        assert main(["runs", "list"]) == ExitCode.MET
        assert main(["report", "r1"]) == ExitCode.MET
        capsys.readouterr()
        assert main(["runs", "rm", "r1"]) == ExitCode.ENVIRONMENT_FAILED
        assert "is writing here" in capsys.readouterr().err


def test_report_prints_what_the_run_had_written(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = msgspec.structs.replace(planned().subjects[0], verdicts=(ORIGINAL, VERDICT))
    certificate = certify(msgspec.structs.replace(planned(), subjects=(part,)))
    for arguments in (["--format", "json"], ["--json"]):
        assert main(["report", "r1", *arguments]) == ExitCode.MET
        assert capsys.readouterr().out == render_json(certificate)
    main(["report", "r1", "--format", "markdown"])
    assert capsys.readouterr().out == render_markdown(certificate)
    main(["report", "r1"])
    assert "Survivors of oracle" in capsys.readouterr().out


def test_report_prints_a_certificate_that_is_given_by_its_file_as_it_printed_its_run(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["report", "r1", "--json"])
    (tmp_path / "sent.json").write_text(capsys.readouterr().out)
    main(["report", "r1"])
    of_the_run = capsys.readouterr().out
    assert main(["report", str(tmp_path / "sent.json")]) == ExitCode.MET
    assert capsys.readouterr().out == of_the_run
    assert main(["report", str(tmp_path / "none.json")]) == ExitCode.USAGE
    assert "no such file" in capsys.readouterr().err


def test_an_unfinished_run_is_reported_as_far_as_it_got_and_says_so(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "r2", "--json"]) == ExitCode.MET
    said = capsys.readouterr()
    assert "run r2 is unfinished: 1 of 3 verdicts, partial figures" in said.err
    found = json.loads(said.out)
    assert found["interrupted"]
    assert found["results"][KILLED]["oracle"]["status"] == "not_run"


def test_a_run_that_planned_nothing_has_no_report(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report"]) == ExitCode.NOTHING_SCORED
    assert "run r3" in capsys.readouterr().err


def test_a_controls_run_points_to_its_file(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recording(out, Scope("controls")) as record:
        record.finish()
    assert main(["report", "r4"]) == ExitCode.USAGE
    assert "controls*.json" in capsys.readouterr().err


def test_reading_a_store_imports_neither_torch_nor_triton(out: Path) -> None:
    import subprocess
    import sys

    from tests.e2e.commands import environment

    code = (
        "import sys; from gatecert.cli import main; main(['runs', 'list']); "
        "main(['report', 'r1']); print(sorted({'torch', 'triton'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=out.parent,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_stored_command_keeps_no_oracle() -> None:
    scope = Scope("certify", gates=("tests",), no_oracle=True)
    assert str(scope) == "certify --gate tests --no-oracle"
    old = msgspec.json.decode(b'{"command": "certify"}', type=Scope)
    assert str(old) == "certify"
