"""Claims about the processes of a command: what they are given, and what they tell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gatecert.gates.command.run import Command, Ran
from gatecert.sandbox.entry_launches import of_entry

TEXT = "WHO = 'the mutant'\n"


def run(folder: Path, code: str, *options: str, **more: object) -> Ran:
    """Python with this code, and `thing.py` of the folder replaced."""
    (folder / "thing.py").write_text("WHO = 'the original'\n")
    command = Command((sys.executable, *options, "-c", code), folder, {}, (str(folder),))
    return command.run({str(folder / "thing.py"): TEXT}, timeout_s=60, **more)  # type: ignore[arg-type]


def test_the_overlay_is_imported_and_proven(tmp_path: Path) -> None:
    ran = run(tmp_path, "import thing; print(thing.WHO)")
    assert ran.stdout == "the mutant\n", ran.stderr
    assert ran.seen.missed == ()


def test_a_process_that_imports_nothing_proves_nothing(tmp_path: Path) -> None:
    ran = run(tmp_path, "pass")
    assert len(ran.seen.reports) == 1
    assert ran.seen.missed == (str(tmp_path / "thing.py"),)


@pytest.mark.parametrize("option", ["-I", "-S"])
def test_a_python_that_looks_away_gives_no_proof(tmp_path: Path, option: str) -> None:
    ran = run(tmp_path, f"import sys; sys.path.append({str(tmp_path)!r}); import thing", option)
    assert ran.status == 0, ran.stderr
    assert ran.seen.reports == ()
    assert ran.seen.missed == (str(tmp_path / "thing.py"),)


def test_a_process_that_runs_the_original_spoils_the_proof_of_another(tmp_path: Path) -> None:
    code = (
        "import thing, subprocess, sys\nsubprocess.run([sys.executable, 'thing.py'], check=True)\n"
    )
    ran = run(tmp_path, code)
    assert len(ran.seen.reports) == 2
    assert ran.seen.missed == (str(tmp_path / "thing.py"),)


def test_a_plain_process_imports_no_torch(tmp_path: Path) -> None:
    code = "import sys; print([n for n in ('torch', 'triton', 'msgspec') if n in sys.modules])"
    ran = run(tmp_path, code)
    assert ran.stdout == "[]\n", ran.stderr
    assert ran.seen.blind == ""


def test_a_sitecustomize_of_the_users_runs_as_before(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import thing\nMINE = thing.WHO\n")
    ran = run(tmp_path, "import sitecustomize; print(sitecustomize.MINE, sitecustomize.__file__)")
    assert ran.stdout == f"the mutant {tmp_path}/sitecustomize.py\n", ran.stderr


def test_a_python_without_gatecert_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gatecert.py").write_text("raise ImportError('no gatecert here')\n")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    ran = run(tmp_path, "import thing")
    assert ran.status == 0, ran.stderr
    assert ran.seen.missed
    assert "no gatecert here" in ran.seen.blind
    assert sys.executable in ran.seen.blind


@pytest.mark.parametrize(
    ("code", "uncaught", "no_verdict"),
    [
        ("raise ValueError('wrong')", "ValueError: wrong", False),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'", True),
        ("raise MemoryError", "MemoryError without a message, in <module> at <string>:1", True),
        ("raise RuntimeError('DefaultCPUAllocator: not enough memory')", None, True),
        ("raise SystemExit(1)", "", False),
    ],
)
def test_what_ended_a_process_is_told(
    tmp_path: Path, code: str, uncaught: str | None, no_verdict: bool
) -> None:
    (report,) = run(tmp_path, code).seen.reports
    assert report.no_verdict is no_verdict
    assert uncaught is None or report.uncaught == uncaught


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_tells_of_itself_alone(tmp_path: Path, leave: str) -> None:
    code = f"import os, sys\nif os.fork() == 0:\n    import thing\n    {leave}\nos.wait()\n"
    parent, child = sorted(run(tmp_path, code).seen.reports, key=lambda report: len(report.proven))
    assert (len(parent.proven), len(child.proven)) == (0, 1)
    assert parent.pid != child.pid


SCALE = """
import torch, triton
import triton.language as tl

@triton.jit
def KERNEL(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 3.0, mask=offs < n)

def ENTRY(x):
    KERNEL[(1,)](x, x.numel(), BLOCK=8)
"""


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        # The entry's module brings torch, or comes after it.
        ("import mine, theirs, torch", 2),
        ("import torch, mine, theirs", 2),
        ("import torch, theirs\nclass mine: scale = theirs.other", 0),
    ],
)
def test_launches_in_calls_of_the_entry_are_told_from_others(
    tmp_path: Path, code: str, calls: int
) -> None:
    for name, kernel, entry in (
        ("mine", "my_kernel", "scale"),
        ("theirs", "other_kernel", "other"),
    ):
        text = SCALE.replace("KERNEL", kernel).replace("ENTRY", entry)
        (tmp_path / f"{name}.py").write_text(text)
    use = "mine.scale(torch.ones(4))\nmine.scale(torch.ones(5))\ntheirs.other(torch.ones(4))\n"
    seen = run(tmp_path, f"{code}\n{use}", watch=True, entry="mine:scale").seen
    assert (seen.entry_calls, seen.launch_count) == (calls, 3)
    by_entry = {"mine:my_kernel"} if calls else set()
    assert {kernel for kernel, _ in seen.by_entry} == by_entry
    of_gate = {launch.kernel for launch in of_entry(seen.launches, seen.by_entry, seen.entry_calls)}
    assert of_gate == (by_entry or {"theirs:other_kernel"})


def test_a_command_is_stopped_at_its_time_limit(tmp_path: Path) -> None:
    command = Command((sys.executable, "-c", "import time; time.sleep(60)"), tmp_path, {})
    ran = command.run({}, timeout_s=0.5)
    assert ran.status is None
    assert ran.seconds < 20


def test_of_much_output_the_end_is_kept(tmp_path: Path) -> None:
    ran = run(tmp_path, "print('x' * 3_000_000); print('the end')")
    assert ran.stdout.endswith("x\nthe end\n")
    assert len(ran.stdout) < 2_000_000
