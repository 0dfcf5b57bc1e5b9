"""Claims about warming a server: libraries that the tests use, never the code under test."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from gatecert.gates.evidence import TestTally
from gatecert.gates.records import GateOutcome
from gatecert.gates.suite.recorder import Failure
from gatecert.gates.suite.session import Session, verdict_of


def in_a_fresh_process(folder: Path, code: str) -> str:
    """What `code` prints, run with `folder` first on its path."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(folder)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def packages(folder: Path) -> None:
    """`acme` is under test; `helper` needs it, `outer` needs `helper`, `hedged` copes without
    it, and `plain` has nothing to do with it."""
    texts = {
        "acme": "",
        "helper": "import acme",
        "outer": "import helper",
        "hedged": "try:\n    import acme\nexcept ImportError:\n    acme = None",
        "plain": "import json",
    }
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text + "\n")


def test_whatever_imports_the_code_under_test_is_left_out(tmp_path: Path) -> None:
    packages(tmp_path)
    code = textwrap.dedent(
        """
        from gatecert.gates.suite.warm import importable_without
        names = ["helper", "outer", "hedged", "plain", "no_such_module"]
        print(importable_without(names, {"acme"}), "acme" in sys.modules)
        """
    )
    assert in_a_fresh_process(tmp_path, code) == "['plain'] False"


def test_a_mention_in_the_source_is_enough_to_be_suspected(tmp_path: Path) -> None:
    packages(tmp_path)
    code = textwrap.dedent(
        """
        import hedged, plain
        from gatecert.gates.suite.warm import any_mentions
        print(any_mentions(["hedged", "plain"], {"acme"}), any_mentions(["plain"], {"acme"}))
        """
    )
    assert in_a_fresh_process(tmp_path, code) == "True False"


def test_only_libraries_are_learned(tmp_path: Path) -> None:
    packages(tmp_path)
    code = textwrap.dedent(
        """
        import json.tool, msgspec, plain
        from gatecert.gates.suite.warm import library_modules
        print(library_modules(["json.tool", "msgspec", "plain", "sys"], set()))
        print(library_modules(["json.tool", "msgspec"], {"msgspec"}))
        """
    )
    said = in_a_fresh_process(tmp_path, code).splitlines()
    assert said == ["['json.tool', 'msgspec']", "['json.tool']"]


def test_a_warm_server_has_the_tests_libraries_and_one_thread(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text("def softmax(x):\n    return x\n")
    (tmp_path / "test_acme.py").write_text(
        "import acme, torch\n\n\ndef test_it():\n"
        "    torch.testing.assert_close(acme.softmax(torch.ones(2)), torch.ones(2))\n"
    )
    code = textwrap.dedent(
        f"""
        import os
        from pathlib import Path
        from gatecert.lanes import interpreter
        interpreter.activate()
        from gatecert.gates.suite.gate import PytestGate
        from gatecert.subjects import Subject
        gate = PytestGate("tests", ("test_acme.py",), Path({str(tmp_path)!r}))
        before = "torch.distributed.tensor" in sys.modules
        gate.prepare(Subject("acme", "acme:softmax"), seed=0, quick=False)
        after = "torch.distributed.tensor" in sys.modules
        print(before, after, "acme" in sys.modules, len(os.listdir("/proc/self/task")))
        """
    )
    assert in_a_fresh_process(tmp_path, code).splitlines()[-1] == "False True False 1"


def test_a_failure_outweighs_an_error_and_neither_is_acceptance() -> None:
    failure, error = Failure("t::a", "call", "no"), Failure("t::b", "setup", "broken")

    def outcome(**fields: object) -> GateOutcome:
        return verdict_of(Session(exit_code=1, **fields), "c", "g").outcome  # type: ignore[arg-type]

    assert outcome(failures=(failure,), errors=(error,)) is GateOutcome.REJECTED
    three = TestTally(passed=3)
    assert outcome(tally=three, errors=(error,)) is GateOutcome.ERROR
    assert outcome(tally=three) is GateOutcome.ERROR
    assert outcome(collected=3, tally=TestTally(skipped=3)) is GateOutcome.ERROR
