"""From a running job to the certificate: its shapes are recorded, tried, and proven by hash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from gatecert.errors import ExitCode
from tests.e2e.commands import ROOT, environment, gatecert

JOB = """
import gatecert, torch
from kernels import softmax

with gatecert.record_launches("logs/launches.jsonl"):
    for _ in range(5):
        softmax(torch.randn(3, 777))
    softmax(torch.randn(2, 70_001))
    softmax(torch.randn(2, 8, dtype=torch.float64))
"""
CONFIG = """
[subject.softmax]
operation = "softmax"
entry = "kernels:softmax"
"""


def test_a_bug_at_a_size_of_production_alone_is_seen_once_its_log_is_named(tmp_path: Path) -> None:
    right = (ROOT / "tests" / "testdata" / "kernels_softmax.py").read_text()
    wrong = right.replace("    return y", "    return y * 2 if n_cols == 777 else y")
    assert wrong != right
    (tmp_path / "kernels.py").write_text(wrong)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        env={**environment(), "TRITON_INTERPRET": "1"},
        check=True,
    )
    log = tmp_path / "logs" / "launches.jsonl"
    assert sorted(json.loads(line)["count"] for line in log.read_text().splitlines()) == [1, 1, 5]

    certify = ("certify", "--gate", "oracle", "--operator", "wrong-pad-value", "--jobs", "1")
    assert gatecert(tmp_path, *certify).returncode == ExitCode.MET

    (tmp_path / "gatecert.toml").write_text(CONFIG + 'launch_log = "logs/launches.jsonl"\n')
    done = gatecert(tmp_path, *certify)
    assert done.returncode == ExitCode.CONTROL_REJECTED, done.stderr
    paths = (tmp_path / "gatecert-out").glob("certificate*.json")
    last = max(paths, key=lambda path: path.stat().st_mtime_ns)
    certificate = json.loads(last.read_text())
    rejection = certificate["controls"]["rejections"][0]
    assert "B=3,N=777" in rejection["case"]
    undeclared, scaled = certificate["not_tested"]
    said = "softmax: launch log: 1 calls have dtype float64, which is not declared"
    assert undeclared == said
    assert "launch log: scaled B=2,N=70001 float32 contiguous to B=2,N=" in scaled

    proof = ("--expect-inputs", rejection["inputs_sha256"])
    replayed = gatecert(tmp_path, "replay", rejection["case"], *proof)
    assert replayed.returncode == ExitCode.CONTROL_REJECTED, replayed.stderr
