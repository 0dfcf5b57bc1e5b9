"""Claims about gatecert.toml: it is checked strictly, and errors name path and mend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gatecert.config import CORPUS_CONFIG, find_config, load_config
from gatecert.errors import UsageError

GOOD = """
[subject.softmax]
operation = "softmax"
entry = "acme.kernels:softmax"
dtypes = ["float32", "bfloat16"]
layouts = ["contiguous", "row_padded"]

[gate.tests]
kind = "pytest"
args = ["tests/test_softmax.py", "-q"]

[require]
kill_rate = 0.95
"""


def write(folder: Path, text: str, name: str = "gatecert.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_example_of_the_design_loads(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, GOOD))
    (subject,) = config.subjects
    assert subject.entry == "acme.kernels:softmax"
    assert subject.import_paths == (str(tmp_path),)
    assert config.gates["tests"].kind == "pytest"
    assert config.require.kill_rate == 0.95


def test_pyproject_works_too(tmp_path: Path) -> None:
    table = GOOD.replace("[subject", "[tool.gatecert.subject")
    table = table.replace("[gate", "[tool.gatecert.gate")
    path = write(tmp_path, table.replace("[require", "[tool.gatecert.require"), "pyproject.toml")
    assert find_config(tmp_path) == path
    assert load_config(path).subjects[0].name == "softmax"


def test_the_built_in_corpus_is_a_valid_configuration() -> None:
    assert len(load_config(CORPUS_CONFIG).subjects) >= 12


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('entry = "acme', 'entri = "acme'), r"unknown key 'entri' in .*did you mean 'entry'"),
        (("kill_rate", "kil_rate"), r"unknown key 'kil_rate' in require; did you mean 'kill_rate'"),
        (("[require]", "[requires]"), r"unknown key 'requires' .*did you mean 'require'"),
        (('"bfloat16"', '"bf16"'), r"subject\.softmax\.dtypes: 'bf16' is not one of float32"),
        (("acme.kernels:softmax", "acme.kernels.softmax"), r"'package\.module:function'"),
        (("0.95", '"high"'), r"require\.kill_rate"),
        (("[require]", "[require"), r"not valid TOML"),
    ],
)
def test_an_error_names_the_place_and_the_mend(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        load_config(write(tmp_path, GOOD.replace(*change)))


def test_a_missing_file_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such file; name one with --config"):
        load_config(tmp_path / "absent.toml")


def test_a_file_without_subjects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \[subject\.NAME\] table|subject"):
        load_config(write(tmp_path, "[require]\nkill_rate = 0.5\n"))


def test_layout_names_are_those_of_the_oracle() -> None:
    from gatecert.oracle.layouts import LAYOUTS
    from gatecert.subjects import LAYOUT_NAMES

    assert tuple(LAYOUTS) == LAYOUT_NAMES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[subject.a]\nentry = "m:f"\nlayouts = ["row_paded"]', "did you mean 'row_padded'"),
        ('[subject.a]\noperation = "softmax"', "subject.a"),
        ('[subject.a]\nentry = "m:f"\n[gate.mine]\nkind = "pytst"', "gate.mine.kind"),
        ('[subject.a]\nentry = "m:f"\n[require]\nkill_rate = 95', "write 95% as 0.95"),
    ],
)
def test_a_wrong_value_is_told_with_the_name_of_its_table(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "gatecert.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(said)):
        load_config(path)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a file with --config"):
        load_config(tmp_path)


def test_a_wrong_value_is_answered_with_the_nearest_or_all_valid_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'pytset' at gate\.tests\.kind; did you mean 'pytest'"):
        load_config(write(tmp_path, GOOD.replace('"pytest"', '"pytset"')))
    with pytest.raises(UsageError, match="one of pytest, callable, command, sanitizer"):
        load_config(write(tmp_path, GOOD.replace('"pytest"', '"zzz"')))
    wrong = '[subject.a]\nentry = "m:f"\n[require.classes]\n"{}" = 1.0'
    with pytest.raises(UsageError, match="'mask-mising'; did you mean 'mask-missing'"):
        load_config(write(tmp_path, wrong.format("mask-mising")))
    with pytest.raises(UsageError, match=r"'nonsense'; there are .*mask-missing"):
        load_config(write(tmp_path, wrong.format("nonsense")))
