"""Options become a checked plan, and results are written whole or not at all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.cli.options import Part
from gatecert.cli.publishing import Publishing
from gatecert.cli.setup import (
    check_names,
    check_selection,
    check_writable,
    choose_gates,
    choose_operators,
    choose_subjects,
    make_plan,
    read_config,
    write_file,
)
from gatecert.config import CORPUS_CONFIG, Config
from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.gates.config import GateConfig
from gatecert.subjects import Subject

SUBJECTS = (Subject("softmax", "acme:softmax"), Subject("gelu", "acme:gelu"))
PLAIN = Config("gatecert.toml", ".", SUBJECTS)
TESTED = Config("gatecert.toml", ".", SUBJECTS, {"tests": GateConfig("pytest")})


def test_the_oracle_is_certified_beside_what_the_team_has() -> None:
    assert choose_gates(PLAIN, ()) == ("oracle", "allclose-one-shape")
    assert choose_gates(TESTED, ()) == ("oracle", "tests")


def test_the_first_named_gate_is_certified_with_the_oracle_as_yardstick() -> None:
    assert choose_gates(TESTED, ("tests",)) == ("tests", "oracle")
    assert choose_gates(TESTED, ("oracle", "tests", "tests")) == ("oracle", "tests")


def test_the_oracle_can_be_left_out_where_another_gate_is_left() -> None:
    assert choose_gates(TESTED, (), with_oracle=False) == ("tests",)
    assert choose_gates(PLAIN, ("allclose-one-shape",), with_oracle=False) == (
        "allclose-one-shape",
    )
    with pytest.raises(UsageError, match="leaves no gate: name one with --gate"):
        choose_gates(PLAIN, (), with_oracle=False)
    with pytest.raises(UsageError, match="exclude each other"):
        choose_gates(TESTED, ("oracle",), with_oracle=False)


def test_subjects_keep_the_configurations_order() -> None:
    assert [s.name for s in choose_subjects(PLAIN, ("gelu", "softmax"))] == ["softmax", "gelu"]
    assert choose_subjects(PLAIN, ()) == SUBJECTS


def test_an_unknown_name_is_answered_with_the_nearest_or_with_all() -> None:
    with pytest.raises(UsageError, match=r"unknown subject 'sofmax'; did you mean 'softmax'\?"):
        choose_subjects(PLAIN, ("sofmax",))
    with pytest.raises(UsageError, match="unknown subject 'xyz'; known are softmax, gelu"):
        choose_subjects(PLAIN, ("xyz",))
    check_names("subject", ("gelu",), ("gelu",))


def test_an_unknown_gate_or_operator_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="orakle"):
        make_plan(PLAIN, gate_names=("orakle",))
    with pytest.raises(UsageError, match="drop-lode-mask"):
        make_plan(PLAIN, operator_names=("drop-lode-mask",))


@pytest.mark.parametrize(
    ("mutant", "says"),
    [
        ("sofmax/k/drop-load-mask/1-aaaaaa", "unknown subject 'sofmax'; did you mean 'softmax'?"),
        ("softmax/k/drop-lode-mask/1-aaaaaa", "did you mean 'drop-load-mask'?"),
        ("softmax/k", "write SUBJECT/FUNCTION/OPERATOR/NUMBER"),
    ],
)
def test_of_a_mutant_that_cannot_be_the_wrong_part_is_named(mutant: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        make_plan(PLAIN, only=(mutant,))


def test_mutants_by_name_need_their_own_subjects_alone() -> None:
    plan = make_plan(PLAIN, only=("gelu/k/wrong-constant.swap/1-aaaaaa",))
    assert [subject.name for subject in plan.subjects] == ["gelu"]
    assert plan.whole


@pytest.mark.parametrize(
    "wrong",
    [
        {"subject_names": ("sofmax",)},
        {"gate_names": ("orakle",)},
        {"operator_names": ("drop-lode-mask",)},
        {"only": ("softmax/k/drop-lode-mask/1-aaaaaa",)},
    ],
)
def test_a_wrong_name_is_refused_before_torch_is_imported(wrong: dict[str, tuple[str]]) -> None:
    code = f"""if True:
        import sys
        from gatecert.cli.setup import make_plan
        from gatecert.config import CORPUS_CONFIG, load_config
        from gatecert.errors import UsageError
        try:
            make_plan(load_config(CORPUS_CONFIG), **{wrong!r})
        except UsageError:
            print(sorted({{"torch", "triton", "joblib"}} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_operators_keep_the_catalogues_order() -> None:
    every = choose_operators(())
    names = [every[3].name, every[0].name]
    assert [o.name for o in choose_operators(names)] == [every[0].name, every[3].name]


def test_the_corpus_is_used_and_named_where_nothing_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_config(None).path == str(CORPUS_CONFIG)
    assert "built-in corpus" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "header"), [("gatecert.toml", ""), ("pyproject.toml", "tool.gatecert.")]
)
def test_the_folders_own_configuration_is_used_and_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    header: str,
) -> None:
    (tmp_path / name).write_text(f'[{header}subject.mine]\nentry = "acme:mine"\n')
    monkeypatch.chdir(tmp_path)
    assert [s.name for s in read_config(None).subjects] == ["mine"]
    out, err = capsys.readouterr()
    assert (out, name in err) == ("", True)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "certificate.json"
    write_file(path, "old")
    write_file(path, "new")
    assert path.read_text() == "new"
    assert [p.name for p in path.parent.iterdir()] == ["certificate.json"]


def test_a_folder_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another --out"):
        write_file(tmp_path / "file" / "certificate.json", "text")


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml"):
        read_config(tmp_path / "nowhere.toml")


def test_only_takes_a_glob_and_leaves_the_subjects_that_it_may_name() -> None:
    def chosen(glob: str) -> list[str]:
        return [subject.name for subject in choose_subjects(PLAIN, (), (glob,))]

    assert chosen("gelu/*") == ["gelu"]
    assert chosen("*drop-store-mask*") == ["softmax", "gelu"]
    assert chosen("soft*mask*") == ["softmax"]
    check_selection(PLAIN, only=("gelu/*",))
    with pytest.raises(UsageError, match="no mutant 'glu/\\*'"):
        check_selection(PLAIN, only=("glu/*",))


def test_the_configuration_is_found_above_up_to_the_top_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gatecert.toml").write_text('[subject.a]\nentry = "a:a"\n')
    below = tmp_path / "repository" / "src"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    (tmp_path / "repository" / ".git").mkdir()
    assert read_config(None).path == str(CORPUS_CONFIG)
    (tmp_path / "repository" / ".git").rename(tmp_path / ".git")
    assert [subject.name for subject in read_config(None).subjects] == ["a"]
    assert str(tmp_path / "gatecert.toml") in capsys.readouterr().err


def test_an_unknown_revision_and_a_missing_pytest_are_refused_with_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config("gatecert.toml", str(tmp_path), SUBJECTS, {"tests": GateConfig("pytest")})
    with pytest.raises(UsageError, match="is in no git repository"):
        make_plan(config, part=Part(in_diff="main"))
    monkeypatch.setattr("gatecert.gates.suite.gate.importlib.util.find_spec", lambda name: None)
    with pytest.raises(EnvironmentFailure, match="gate 'tests' needs pytest: pip install pytest"):
        make_plan(config, gate_names=("tests",))


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_writable(tmp_path / "new" / "junit.xml", "--junit")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(UsageError, match="file is no folder; choose another --junit"):
        Publishing(junit=tmp_path / "file" / "junit.xml").check()
    with pytest.raises(UsageError, match="choose another --ratchet"):
        Publishing(ratchet=tmp_path / "file" / "r.json", update_ratchet=True).check()
