"""Small runs for the tests of certificates and reports."""

from __future__ import annotations

from typing import Any

from gatecert.campaign.records import Environment, Run, SubjectRun
from gatecert.gates.records import GateOutcome, Reason, Verdict, Worst
from gatecert.mutants.records import (
    Candidate,
    CandidateKind,
    CodeComparison,
    CodeVerdict,
    Kernel,
    Mutant,
    Skip,
)
from gatecert.operators.records import ObservableBy, Reveal
from gatecert.subjects import Subject

ENVIRONMENT = Environment(
    gatecert="0.1.0",
    python="3.11.7",
    torch="2.13.0",
    triton="3.9.0",
    numpy="2.4.6",
    platform="Linux x86_64",
    lane="interpreter",
    operators="0123abcd",
    labels_sha256="f" * 64,
)


def mutant(name: str, **changes: Any) -> Mutant:
    """A mutant `SUBJECT/kernel/OPERATOR/N` named by its id."""
    subject, kernel, operator, _ = name.split("/")
    fields: dict[str, Any] = {
        "id": name,
        "subject": subject,
        "operator": operator,
        "bug_class": "mask-missing",
        "variant": "",
        "scored": True,
        "module": "acme.kernels",
        "kernel": kernel,
        "path": "acme/kernels.py",
        "line": 7,
        "detail": "the load has no mask",
        "diff": "@@ -7 +7 @@\n-    x = tl.load(p, mask=m)\n+    x = tl.load(p)\n",
        "edits": (),
        "source_sha256": "0" * 64,
        "observable_by": (ObservableBy.VALUES,),
        "reveal": (Reveal.TAIL,),
    }
    return Mutant(**{**fields, **changes})


def verdict(candidate: str, outcome: str = "accepted", **changes: Any) -> Verdict:
    """A verdict of the oracle unless `gate` says otherwise."""
    fields: dict[str, Any] = {"gate": "oracle", "launches": 3, "cases": 5, "bits": candidate}
    return Verdict(candidate=candidate, outcome=GateOutcome(outcome), **{**fields, **changes})


def comparison(name: str, said: str) -> CodeComparison:
    """What compiling a mutant said."""
    return CodeComparison(name, CodeVerdict(said))


def subject_run(name: str = "softmax", **changes: Any) -> SubjectRun:
    """A subject with one kernel, named after it."""
    fields: dict[str, Any] = {
        "subject": Subject(name, f"acme.kernels:{name}", name),
        "kernels": (Kernel("acme.kernels", f"{name}_kernel", "acme/kernels.py", 5),),
    }
    return SubjectRun(**{**fields, **changes})


def run(*parts: SubjectRun, **changes: Any) -> Run:
    """A run of the oracle unless `gate` and `gates` say otherwise."""
    fields: dict[str, Any] = {
        "gate": "oracle",
        "gates": ("oracle",),
        "seed": 0,
        "quick": False,
        "lane": "interpreter",
        "environment": ENVIRONMENT,
    }
    return Run(subjects=parts, **{**fields, **changes})


def typical_run() -> Run:
    """Two gates on two subjects, with every kind of thing that a report shows."""
    killed = mutant("softmax/k/drop-load-mask/1-aaaaaa")
    survivor = mutant("softmax/k/wrong-constant.swap/1-bbbbbb", bug_class="constant")
    unseen = mutant("softmax/k/drop-store-mask/1-cccccc", observable_by=(ObservableBy.DEVICE,))
    same = mutant("softmax/k/dropped-factor/1-dddddd", bug_class="formula-term")
    rung = mutant(
        "softmax/k/wrong-constant.1e-4/1-eeeeee",
        bug_class="constant",
        variant="1e-4",
        scored=False,
    )
    softmax = subject_run(
        mutants=(killed, survivor, unseen, same, rung),
        comparisons=(comparison(same.id, "equivalent"),),
        skipped=(Skip("acme.kernels:old", "acme/kernels.py", 50, "not launched"),),
        controls=(Candidate("softmax/benign/blocks", CandidateKind.BENIGN, "softmax"),),
        adversaries=(
            Candidate("softmax/adversary/zeros", CandidateKind.ADVERSARY, "softmax"),
            Candidate("softmax/adversary/identity", CandidateKind.ADVERSARY, "softmax"),
        ),
        verdicts=(
            verdict("softmax/original"),
            verdict("softmax/benign/blocks"),
            verdict("softmax/adversary/zeros", "rejected"),
            verdict("softmax/adversary/identity", "rejected"),
            verdict(killed.id, "rejected", reason=Reason.VALUES, case="softmax/float32/N=5"),
            verdict(
                survivor.id,
                case="softmax/float32/B=1,N=33/contiguous/normal/seed=0",
                worst=Worst("out", (0, 3), 1.5e-4, 2.0e-4),
                margin=0.75,
            ),
            verdict(rung.id),
            verdict("softmax/original", gate="weak"),
            verdict("softmax/benign/blocks", "rejected", gate="weak", detail="3 of 9 differ"),
            verdict("softmax/adversary/zeros", gate="weak"),
            verdict("softmax/adversary/identity", "rejected", gate="weak"),
            verdict(killed.id, gate="weak"),
            verdict(survivor.id, gate="weak"),
            verdict(rung.id, gate="weak"),
        ),
        not_tested=("gradients",),
    )
    broken = subject_run("gelu", failed="importing acme.gelu raised ImportError", kernels=())
    return run(softmax, broken, gates=("oracle", "weak"), timings_s={"judge": 12.5, "compile": 3.0})
