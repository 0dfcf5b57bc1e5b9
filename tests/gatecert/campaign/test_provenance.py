"""What a run is of is written down without an absolute path, and found again in a tree."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gatecert.campaign.gate_files import gate_files
from gatecert.campaign.provenance import Places, look_again, settings_of
from gatecert.config import Config, load_config
from gatecert.gates.config import GateConfig
from gatecert.provenance import FunctionHash, GateHashes, Provenance, SubjectHashes
from tests.gatecert.drafting.repositories import write

CONFIG = """
import_paths = ["src"]
[subject.a]
entry = "acme.k:f"
dims = { N = [4] }
[subject.b]
entry = "acme.k:g"
[gate.tests]
kind = "pytest"
args = ["tests", "-q"]
[gate.other]
kind = "callable"
callable = "check:gate"
[require]
kill_rate = 0.5
"""
KERNELS = """
SIZE = 64

@first
@second(
    3,
)
def f(x):
    return x

def g(x):
    return x
"""
FILES = {
    "gatecert.toml": CONFIG,
    "src/acme/__init__.py": "",
    "src/acme/k.py": KERNELS,
    "tests/test_a.py": "",
    "tests/unit/test_b.py": "",
    "tests/unit/helper.py": "",
    "tests/conftest.py": "",
    "conftest.py": "",
    "pytest.ini": "[pytest]\n",
    "check.py": "def gate(entry): ...\n",
    "data.bin": "1",
    "notes.md": "prose",
    "out/gatecert.sqlite": "",
    "out/certificate.json": "{}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path, FILES)


def config(project: Path) -> Config:
    return load_config(project / "gatecert.toml")


def look(project: Path) -> Provenance:
    """The project as a run over subject `a` and gate `tests` would be written down."""
    hashes = SubjectHashes(
        kernels=(FunctionHash("acme.k:f", "src/acme/k.py", ""),),
        launchers=(FunctionHash("acme.k:g", "src/acme/k.py", ""),),
        files={"src/acme/k.py": ""},
    )
    then = Provenance(
        config="gatecert.toml",
        settings=settings_of(config(project), ["a"], ["tests"]),
        subjects={"a": hashes},
        gates={"tests": GateHashes()},
        operators={"drop-load-mask": 0},
        libraries={"pytest": ""},
    )
    return look_again(then, config(project))


def test_looking_twice_at_one_tree_gives_one_record(project: Path) -> None:
    assert look(project) == look(project)
    assert look(project).operators["drop-load-mask"] >= 1
    assert look(project).libraries["pytest"]


def test_settings_are_those_of_what_took_part_and_not_as_by_default(project: Path) -> None:
    assert look(project).settings == {
        "import_paths": '["src"]',
        "subject.a.entry": '"acme.k:f"',
        "subject.a.dims.N": "[4]",
        "gate.tests.kind": '"pytest"',
        "gate.tests.args": '["tests","-q"]',
        "require.kill_rate": "0.5",
    }


def test_an_absolute_path_in_a_setting_is_hashed(project: Path) -> None:
    text = CONFIG.replace('["src"]', f'["{project}"]')
    (project / "gatecert.toml").write_text(text)
    value = look(project).settings["import_paths"]
    assert str(project) not in value
    assert value.startswith('["sha256:')


@pytest.mark.parametrize(
    ("file", "before", "after", "changes"),
    [
        ("src/acme/k.py", "    3,\n", "    4,\n", {"kernel", "file"}),
        (
            "src/acme/k.py",
            "def g(x):\n    return x",
            "def g(x):\n    return -x",
            {"launcher", "file"},
        ),
        ("src/acme/k.py", "SIZE = 64", "SIZE = 32", {"file"}),
        ("tests/unit/test_b.py", "", "x = 1", {"gate"}),
        ("tests/conftest.py", "", "x = 1", {"gate"}),
        ("pytest.ini", "[pytest]\n", "[pytest]\naddopts = -x\n", {"gate"}),
        ("tests/unit/helper.py", "", "x = 1", {"tree"}),
        ("data.bin", "1", "2", {"tree"}),
        ("notes.md", "prose", "other prose", set()),
        ("out/certificate.json", "{}", "{} ", set()),
        ("gatecert.toml", "[subject.b]", "[subject.c]", set()),
    ],
)
def test_an_edit_shows_where_it_belongs_and_nowhere_else(
    project: Path, file: str, before: str, after: str, changes: set[str]
) -> None:
    then = look(project)
    (project / file).write_text((project / file).read_text().replace(before, after, 1) or after)
    now = look(project)
    found = {
        "kernel": now.subjects["a"].kernels != then.subjects["a"].kernels,
        "launcher": now.subjects["a"].launchers != then.subjects["a"].launchers,
        "file": now.subjects["a"].files != then.subjects["a"].files,
        "gate": now.gates["tests"].files != then.gates["tests"].files,
        "tree": now.gates["tests"].tree_sha256 != then.gates["tests"].tree_sha256,
    }
    assert {name for name, differs in found.items() if differs} == changes
    assert now.settings == then.settings


def test_a_large_file_of_the_same_size_is_noticed(project: Path) -> None:
    size = 5 << 20
    (project / "data.bin").write_bytes(b"1" * size)
    then = look(project)
    (project / "data.bin").write_bytes(b"1" * (size - 1) + b"2")
    assert look(project).gates["tests"].tree_sha256 != then.gates["tests"].tree_sha256


def test_a_file_is_named_relative_to_the_configuration_or_by_its_module(project: Path) -> None:
    places = Places(project, (str(project / "src"),))
    assert places.name_of(str(project / "src/acme/k.py")) == "src/acme/k.py"
    assert places.path_of("src/acme/k.py") == project / "src/acme/k.py"
    assert places.path_of("src/acme/gone.py") is None
    libcst = sys.modules["msgspec"].__file__
    assert libcst is not None
    assert places.name_of(libcst) == "module:msgspec"
    assert places.path_of("module:msgspec") == Path(libcst)
    outside = write(project.parent / "elsewhere", {"lib/p/__init__.py": "", "lib/p/m.py": ""})
    assert places.name_of(str(outside / "lib/p/m.py")) == "module:p.m"
    beside = Places(project, (str(outside / "lib"),))
    assert beside.name_of(str(outside / "lib/p/m.py")) == "../elsewhere/lib/p/m.py"


@pytest.mark.parametrize(
    ("table", "files"),
    [
        (
            GateConfig("pytest", args=("tests/unit/test_b.py::test_x", "-q")),
            {"tests/unit/test_b.py", "tests/conftest.py", "conftest.py", "pytest.ini"},
        ),
        (
            GateConfig("pytest", args=("-q",)),
            {
                *("tests/test_a.py", "tests/unit/test_b.py", "tests/conftest.py"),
                *("conftest.py", "pytest.ini"),
            },
        ),
        (
            GateConfig("pytest", args=("test_a.py",), rootdir="tests"),
            {"tests/test_a.py", "tests/conftest.py"},
        ),
        (GateConfig("callable", callable="check:gate"), {"check.py"}),
        (
            GateConfig("command", command=("python", "check.py", "--data", "data.bin")),
            {"check.py", "data.bin"},
        ),
    ],
)
def test_the_files_of_a_gate_are_those_that_its_table_names(
    project: Path, table: GateConfig, files: set[str]
) -> None:
    found = {path.relative_to(project).as_posix() for path in gate_files(table, project)}
    assert found == files


def test_an_oracle_that_took_part_is_written_down_with_its_file_and_no_other(
    tmp_path: Path,
) -> None:
    tables = '[oracle.mine]\ntolerances = "t.toml"\n[oracle.other]\nstrategy = "quick"\n'
    project = write(tmp_path, {**FILES, "gatecert.toml": CONFIG + tables, "t.toml": "format = 1\n"})
    settings = settings_of(config(project), ["a"], ["oracle-mine"])
    mine = {key: value for key, value in settings.items() if key.startswith("oracle.")}
    assert list(mine) == [
        "oracle.mine.strategy",
        "oracle.mine.tolerances",
        "oracle.mine.tolerances_sha256",
    ]
    then = Provenance(settings=settings)
    assert look_again(then, config(project)).settings == settings
    (project / "t.toml").write_text("format = 2\n")
    now = look_again(then, config(project)).settings
    assert {key for key in now if now[key] != settings[key]} == {"oracle.mine.tolerances_sha256"}
