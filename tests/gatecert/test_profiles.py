"""Profiles are data that fit the catalogue, and a configuration names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.config import load_config
from gatecert.errors import UsageError
from gatecert.mutants.records import CandidateKind
from gatecert.operators.registry import bug_classes
from gatecert.oracle.strategies import STRATEGIES
from gatecert.profiles import DimsRule, Profile, dims_around, get_profile, profiles

ROOT = Path(__file__).parents[2]
NAMES = ("llm-generated", "hand-optimised", "autotune-config", "toolkit-upgrade", "vendor-call")


def test_there_is_one_for_every_origin() -> None:
    assert tuple(profiles()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_names_classes_and_strategies_that_exist(name: str) -> None:
    profile = get_profile(name)
    assert set(profile.classes) <= set(bug_classes())
    assert len(set(profile.classes)) == len(profile.classes)
    assert profile.strategy in STRATEGIES
    assert profile.summary


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_is_documented_with_a_section_of_its_own(name: str) -> None:
    page = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in page
    assert f"\n## {name}\n" in page


def test_the_usual_treatment_and_that_of_generated_code_leave_nothing_out() -> None:
    for profile in (Profile(), get_profile("llm-generated")):
        assert all(profile.covers(name) for name in bug_classes())
        assert list(profile.left_out(bug_classes())) == []


def test_the_usual_strategy_is_the_oracles_own() -> None:
    from gatecert.gates.oracle import OracleGate

    assert get_profile("llm-generated").strategy == OracleGate().strategy


def test_profiles_that_look_alike_to_a_gate_share_their_verdicts() -> None:
    usual = Profile().for_gates
    assert get_profile("llm-generated").for_gates == usual
    assert get_profile("toolkit-upgrade").for_gates == usual
    tuned = get_profile("autotune-config").for_gates
    assert (tuned.strategy, tuned.every_config) == ("tiling", True)


def test_what_a_profile_leaves_out_is_said() -> None:
    tuned = get_profile("autotune-config")
    (line,) = tuned.left_out(bug_classes())
    assert "eps-placement" in line
    assert "mask-missing" not in line
    vendor = "\n".join(get_profile("vendor-call").left_out(bug_classes()))
    assert "plants no bugs" in vendor
    assert "no benign rewrites" in vendor
    assert CandidateKind.ADVERSARY in get_profile("vendor-call").candidates


def test_sizes_lie_around_every_block_of_a_tiled_dim() -> None:
    found = dims_around({"N": (100,), "D": (64,)}, ("M", "N"), {"N": (32,)}, (16,))
    assert found["N"] == (100, 15, 16, 17, 31, 32, 33, 65)
    assert found["M"] == (15, 16, 17, 33)
    assert found["D"] == (64,)
    assert dims_around({}, ("N",), {}) == {}


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'llm-generated'"):
        get_profile("llm-generatd")


def config(folder: Path, top: str, own: str = "") -> Path:
    path = folder / "gatecert.toml"
    path.write_text(f'{top}\n[subject.a]\nentry = "a:b"\n{own}\n[subject.b]\nentry = "a:c"\n')
    return path


def test_a_subjects_own_profile_takes_the_place_of_the_files(tmp_path: Path) -> None:
    path = config(tmp_path, 'profile = "hand-optimised"', 'profile = "autotune-config"')
    first, second = load_config(path).subjects
    assert first.profile.name == "autotune-config"
    assert first.profile.dims is DimsRule.AROUND_CONFIGS
    assert second.profile.name == "hand-optimised"


def test_a_spot_check_without_sizes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"subject 'a': profile 'vendor-call' .* dims = \{"):
        load_config(config(tmp_path, "", 'profile = "vendor-call"'))
    path = config(tmp_path, "", 'profile = "vendor-call"\ndims = { N = [4] }')
    assert not load_config(path).subjects[0].profile.plants
