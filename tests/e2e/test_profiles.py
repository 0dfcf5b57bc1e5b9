"""Every profile runs, and does what its row of docs/profiles.md says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gatecert.errors import ExitCode
from tests.e2e.commands import gatecert, project


def certificate(folder: Path) -> dict[str, Any]:
    paths = (folder / "out").glob("certificate*.json")
    last = max(paths, key=lambda path: path.stat().st_mtime_ns)
    found: dict[str, Any] = json.loads(last.read_text())
    return found


def certify(folder: Path, *arguments: str) -> int:
    done = gatecert(
        folder, "certify", "--gate", "oracle", "--jobs", "1", "--out", "out", *arguments
    )
    assert done.returncode in (0, 2, 3), done.stderr
    return done.returncode


def test_generated_code_gets_everything(tmp_path: Path) -> None:
    project(tmp_path, "kernels_softmax:softmax")
    code = certify(tmp_path, "--profile", "llm-generated", "--operator", "wrong-pad-value")
    assert code == ExitCode.MET
    found = certificate(tmp_path)
    assert found["subjects"][0]["profile"] == "llm-generated"
    assert found["adversaries"]["total"] > 0
    assert found["controls"]["runs"] > 1
    assert found["not_tested"] == []


def test_an_edit_by_hand_is_judged_by_masks_and_bounds_around_its_blocks(tmp_path: Path) -> None:
    project(tmp_path, "kernels_fixed_block:leaky_relu", "leaky_relu")
    plain = certify(tmp_path, "--operator", "drop-load-mask")
    assert plain == ExitCode.MET
    cases = certificate(tmp_path)["controls"]["cases"]
    code = certify(
        tmp_path,
        *("--profile", "hand-optimised", "--operator", "drop-load-mask"),
        *("--operator", "dropped-factor"),
    )
    assert code == ExitCode.MET
    found = certificate(tmp_path)
    assert set(found["by_class"]) == {"mask-missing"}
    # B-1, B, B+1 and 2B+1 of the block of 64, each with two kinds of values.
    assert found["controls"]["cases"] == cases + 8 * found["controls"]["runs"]
    (line,) = found["not_tested"]
    assert "formula-term" in line


def test_a_new_configuration_is_judged_under_itself(tmp_path: Path) -> None:
    right = project(tmp_path / "right", "kernels_autotuned:softmax")
    code = certify(right, "--profile", "autotune-config", "--operator", "wrong-loop-range")
    assert code == ExitCode.MET
    found = certificate(right)
    assert found["kill_rate"]["value"] == 1.0
    wrong = project(tmp_path / "wrong", "kernels_wrong_in_one_config:softmax")
    code = certify(wrong, "--profile", "autotune-config", "--operator", "drop-store-mask")
    assert code == ExitCode.CONTROL_REJECTED
    rejection = certificate(wrong)["controls"]["rejections"][0]
    assert rejection["detail"].startswith("under autotune configuration 2: ")
    replayed = gatecert(wrong, "replay", rejection["case"])
    assert replayed.returncode == ExitCode.CONTROL_REJECTED, replayed.stderr
    assert "under autotune configuration 2" in replayed.stdout


def test_an_upgrade_is_held_against_the_run_before_it(tmp_path: Path) -> None:
    project(tmp_path, "kernels_softmax:softmax")
    assert certify(tmp_path, "--quick", "--seed", "5", "--operator", "drop-store-mask") == 0
    before = tmp_path / "before.json"
    shutil.copy(next((tmp_path / "out").glob("certificate*.json")), before)
    upgrade = ("--profile", "toolkit-upgrade", "--against")
    assert certify(tmp_path, *upgrade, "before.json") == ExitCode.MET
    found = certificate(tmp_path)
    assert (found["seed"], found["quick"]) == (5, True)
    assert found["mutants"]["survived"] == found["mutants"]["killed"] == 0
    assert found["against"]["compared"] == found["controls"]["runs"] > 1
    assert found["against"]["changes"] == []
    document = json.loads(before.read_text())
    before.write_text(json.dumps(document | {"seed": 6}))
    done = gatecert(tmp_path, "certify", *upgrade, "before.json", "--out", "out")
    assert done.returncode == ExitCode.USAGE
    assert "does not match its own hash" in done.stderr


def test_an_upgrade_needs_to_know_what_was_before(tmp_path: Path) -> None:
    project(tmp_path, "kernels_softmax:softmax")
    done = gatecert(tmp_path, "certify", "--profile", "toolkit-upgrade", "--out", "out")
    assert done.returncode == ExitCode.USAGE
    assert "--against" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """An adapter around a library call."""
    (tmp_path / "adapter.py").write_text(
        "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, dim=-1)\n"
    )
    (tmp_path / "gatecert.toml").write_text(
        '[subject.softmax]\noperation = "softmax"\nentry = "adapter:softmax"\n'
        'dims = { N = [300, 7], B = [2] }\nprofile = "vendor-call"\n'
    )
    return tmp_path


def test_a_vendor_call_is_checked_at_the_listed_sizes_without_mutants(vendor: Path) -> None:
    assert certify(vendor) == ExitCode.MET
    found = certificate(vendor)
    assert found["controls"]["runs"] == 1
    assert found["controls"]["cases"] == 6
    assert found["adversaries"]["total"] > 0
    assert found["adversaries"]["accepted"] == 0
    assert found["results"] == {}


def test_a_wrong_adapter_is_found(vendor: Path) -> None:
    text = (vendor / "adapter.py").read_text()
    (vendor / "adapter.py").write_text(text.replace("dim=-1", "dim=0"))
    assert certify(vendor) == ExitCode.CONTROL_REJECTED
