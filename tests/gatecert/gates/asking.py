"""Ask gates about candidates as a campaign does: a warm server, a forked child each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gatecert.errors import ExitCode
from gatecert.gates.config import GateConfig
from gatecert.gates.records import Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Failed, GateRef, Judged, Limits, ShardRequest, Task
from gatecert.subjects import Subject

TESTDATA = Path(__file__).parents[2] / "testdata"


@dataclass
class Refused(Exception):
    """The gate could not be prepared."""

    message: str
    exit_code: ExitCode


@dataclass(frozen=True)
class Judge:
    """Asks a gate about the softmax of the test data."""

    server: Server

    def __call__(
        self,
        gate: str,
        config: GateConfig | None = None,
        *,
        files: dict[str, str] | None = None,
        module: str = "kernels_softmax",
        stop_at_first: bool = True,
        limit_s: float = 60.0,
        kernels: tuple[str, ...] = (),
    ) -> Verdict:
        """The verdict on the original, or on a mutant if texts are given by file name; `kernels`
        are those that can show it."""
        subject = Subject("softmax", f"{module}:softmax", "softmax", import_paths=(str(TESTDATA),))
        texts = {str(TESTDATA / name): text for name, text in (files or {}).items()}
        kind = CandidateKind.MUTANT if texts else CandidateKind.ORIGINAL
        candidate = Candidate("candidate", kind, "softmax", texts, kernels=kernels)
        return self.ask(
            subject, candidate, GateRef(gate, str(TESTDATA), config), stop_at_first, limit_s
        )

    def ask(
        self,
        subject: Subject,
        candidate: Candidate,
        gate: GateRef,
        stop_at_first: bool = True,
        limit_s: float = 60.0,
    ) -> Verdict:
        """The verdict of a gate on any candidate of any subject."""
        request = ShardRequest(
            subject,
            gates=(gate,),
            tasks=(Task(candidate, gate.name, stop_at_first),),
            # A gate that dies on the original still gets its verdict on the mutant.
            limits=Limits(factor=0.0, minimum_s=limit_s, baseline_s=limit_s),
        )
        events = list(self.server.ask(request))
        for event in events:
            if isinstance(event, Failed):
                raise Refused(event.message, ExitCode(event.exit_code))
        (said,) = [event.verdict for event in events if isinstance(event, Judged)]
        return said


def pytest_gate(name: str, *args: str) -> GateConfig:
    """The suite `name`.py of the test data."""
    return GateConfig("pytest", (f"{name}.py", *args))


def callable_gate(name: str) -> GateConfig:
    """The function `gate` of `name`.py of the test data."""
    return GateConfig("callable", callable=f"{name}:gate")


def mutated(old: str, new: str, name: str = "kernels_softmax.py") -> dict[str, str]:
    """The file with one change, as an overlay."""
    text = (TESTDATA / name).read_text()
    assert text.count(old) == 1, old
    return {name: text.replace(old, new)}


WRONG = mutated("x / tl.sum(x, axis=0)", "x * 0.0")
"""A softmax that gives zeros."""
UNRUNNABLE = mutated("tl.exp(", "tl.no_such_function(")
"""A softmax that the interpreter cannot run."""


def left_unwritten() -> dict[str, str]:
    """A softmax that leaves a third of its output unwritten, in memory that held the number of
    its process."""
    text = (TESTDATA / "kernels_softmax.py").read_text()
    text = text.replace("element_ty), mask=mask)", "element_ty), mask=mask & (cols % 3 > 0))")
    leaves = (
        "    import os\n"
        "    left = [torch.full_like(x, os.getpid()) for _ in range(64)]\n"
        "    del left\n"
        "    y = torch.empty_like(x)"
    )
    return {"kernels_softmax.py": text.replace("    y = torch.empty_like(x)", leaves)}
