"""`remedies` and `accept`, from a weak gate's certificate to what kills its survivors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import ROOT, environment, gatecert, project

TESTDATA = ROOT / "tests" / "testdata"
OPERATORS = (
    "drop-load-mask",
    "drop-store-mask",
    "mask-bound-off-by-one",
    "missing-max-subtraction",
)
CERTIFY = (
    *("certify", "--gate", "allclose-one-shape", "--quick", "--jobs", "1"),
    *(word for name in OPERATORS for word in ("--operator", name)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = project(tmp_path_factory.mktemp("remedies"), "kernels_one_block:softmax")
    done = gatecert(made, *CERTIFY)
    assert done.returncode == 0, done.stderr
    (part,) = (made / "gatecert-out").glob("certificate-r*.json")
    part.rename(made / "gatecert-out" / "certificate.json")  # of a run of some operators
    return made


def survivors(folder: Path) -> list[dict[str, Any]]:
    found = json.loads((folder / "gatecert-out" / "certificate.json").read_text())
    return list(found["survivors"])


def test_the_smallest_set_kills_all_survivors_with_a_witness_and_no_control(folder: Path) -> None:
    done = gatecert(folder, "remedies", "--json", "--write", "added", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["survivors"] == len(survivors(folder)) > 2
    assert found["with_witness"] == sum(bool(one["oracle_case"]) for one in survivors(folder)) > 2
    held_out = found["held_out"]
    assert held_out["killed"] == held_out["mutants"] == found["with_witness"]
    assert held_out["controls"] > 0 and not held_out["rejected"]
    covered = {mutant for case in found["cases"] for mutant in case["kills"]}
    assert len(covered) == found["with_witness"]
    assert len(found["cases"]) < found["with_witness"]
    assert all(case["seconds"] > 0 for case in found["cases"])
    again = gatecert(folder, "remedies", "--json", "--jobs", "1")
    kept = json.loads(again.stdout)
    assert [case["case"] for case in kept["cases"]] == [case["case"] for case in found["cases"]]


def test_what_is_written_runs_as_it_is(folder: Path) -> None:
    table = (folder / "added" / "added.toml").read_text()
    config = folder / "gatecert.toml"
    config.write_text(config.read_text() + "\n" + table)
    arguments = [word.replace("allclose-one-shape", "oracle-added") for word in CERTIFY]
    done = gatecert(folder, *arguments, "--no-oracle", "--out", "with")
    assert done.returncode == 0, done.stderr
    (part,) = (folder / "with").glob("certificate-r*.json")
    found = json.loads(part.read_text())
    killed = {name for name, said in found["results"].items() if "killed" in str(said)}
    assert {one["id"] for one in survivors(folder) if one["oracle_case"]} <= killed
    assert found["controls"]["rejected"] == 0
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "added"],
        cwd=folder,
        env={**environment(), "TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT}:{TESTDATA}"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr


def test_one_mutant_gets_its_simplest_case_in_forms_that_are_run(folder: Path) -> None:
    chosen = next(
        one for one in survivors(folder) if "drop-load-mask" in one["id"] and one["oracle_case"]
    )
    done = gatecert(folder, "remedies", chosen["id"], "--json", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["witness"] == chosen["oracle_case"]
    assert "B=1," in found["case"]
    texts = {text["form"]: text for text in found["texts"]}
    assert texts.keys() == {"config", "pytest", "snippet"}
    assert all(text["kills"] for text in texts.values()), texts
    (tolerance,) = found["tolerances"]
    assert tolerance["controls"] >= 1 and tolerance["dtype"] == "float32"


def test_a_mutant_that_only_guards_see_has_no_test_that_kills_it(folder: Path) -> None:
    chosen = next(one for one in survivors(folder) if "drop-store-mask" in one["id"])
    (found,) = json.loads(gatecert(folder, "remedies", chosen["id"], "--json").stdout)
    by_form = {text["form"]: text for text in found["texts"]}
    assert by_form["config"]["kills"]
    assert not by_form["pytest"]["kills"]
    assert by_form["pytest"]["why"].startswith("on the mutant: accepted")


def test_an_accepted_survivor_is_told_apart_until_its_code_changes(folder: Path) -> None:
    chosen = survivors(folder)[0]["id"]
    assert gatecert(folder, "accept", chosen, "--reason", "").returncode == 1
    done = gatecert(folder, "accept", chosen, "--reason", "nobody scales", "--by", "A. Reader")
    assert done.returncode == 0, done.stderr
    said = gatecert(folder, *CERTIFY, "--out", "accepted")
    assert "1 of them accepted" in said.stdout
    assert "accepted: nobody scales (A. Reader)" in said.stdout
    plain = json.loads((folder / "gatecert-out" / "certificate.json").read_text())
    (part,) = (folder / "accepted").glob("certificate-r*.json")
    assert json.loads(part.read_text())["kill_rate"] == plain["kill_rate"]
    path = folder / "gatecert-accepted.toml"
    code = next(line for line in path.read_text().splitlines() if line.startswith("code"))
    path.write_text(path.read_text().replace(code, 'code = "another"'))
    said = gatecert(folder, *CERTIFY, "--out", "accepted")
    assert "of them accepted" not in said.stdout
    assert "reopened, its code has changed since: nobody scales" in said.stdout


def test_where_nothing_survived_with_a_witness_nothing_is_proposed(tmp_path: Path) -> None:
    made = project(tmp_path, "kernels_one_block:softmax")
    assert gatecert(made, "remedies").returncode == 1
    done = gatecert(
        made, "certify", "--quick", "--operator", "drop-load-mask", "--jobs", "1", "--out", "o"
    )
    assert done.returncode == 0, done.stderr
    (part,) = (made / "o").glob("certificate-r*.json")
    part.rename(made / "o" / "certificate.json")
    assert gatecert(made, "remedies", "--out", "o").returncode == 5
    assert gatecert(made, "remedies", "--gate", "orcale", "--out", "o").returncode == 1
