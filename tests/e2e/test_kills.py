"""Claims about SIGKILL at any moment: the resumed run ends as the unbroken one does. The big
version is benchmarks/kills.py."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.kills import VERDICTS_IN, Bench, run_round, unbroken

SMALL = ("--subject", "leaky_relu", "--quick", "--gate", "oracle", "--operator", "drop-load-mask")


@pytest.mark.timeout(1200)
def test_three_kills_lose_nothing_double_nothing_and_change_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SMALL, jobs=1)
    wanted, lengths = unbroken(bench, tmp_path / "unbroken")
    assert wanted["mutants"]["killed"] > 0
    draw = random.Random(1)
    kills = [
        kill
        for number, stage in enumerate(("probe and plant", "judge", VERDICTS_IN))
        for kill in run_round(bench, number, draw, wanted, lengths, 1, (stage,))
    ]
    assert len({kill.round for kill in kills}) == len(kills) >= 2
    assert any(kill.verdicts_then for kill in kills)
    for kill in kills:
        assert kill.same_certificate, kill
        assert kill.lost == kill.doubled == kill.processes_left == kill.files_left == 0, kill
