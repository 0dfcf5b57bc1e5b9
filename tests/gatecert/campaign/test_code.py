"""What compiled code proves of a mutant depends on whether a domain was declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from gatecert.campaign import code
from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.progress import Silent
from gatecert.mutants.compile_pool import CompilePool
from gatecert.mutants.records import CodeComparison, CodeDepth, CodeVerdict
from gatecert.subjects import Subject
from tests.runs import mutant, subject_run

SAID = ("viable", "unviable", "equivalent", "duplicate", "unknown")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("softmax", ["viable", "unviable", "equivalent", "duplicate", "unknown"]),
        (None, ["viable", "unviable", "same_on_launches", "viable", "unknown"]),
    ],
)
def test_without_an_operation_one_code_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, operation: str | None, expected: list[str]
) -> None:
    def compared(mutants: Sequence[Any], *_: Any, **__: Any) -> list[CodeComparison]:
        twin = {CodeVerdict.DUPLICATE: "another"}
        verdicts = [CodeVerdict(one.detail) for one in mutants]
        return [
            CodeComparison(one.id, verdict, duplicate_of=twin.get(verdict, ""))
            for one, verdict in zip(mutants, verdicts, strict=True)
        ]

    monkeypatch.setattr(code, "compare_code", compared)
    mutants = [mutant(f"s/k/drop-load-mask/{said}", detail=said) for said in SAID]
    part = subject_run(subject=Subject("s", "m:f", operation), mutants=tuple(mutants))
    found = code.compare_at_depth(
        [PlannedSubject(part, {}, (), 0.0)],
        {"s": mutants},
        cast(CompilePool, None),
        CodeDepth.OPTIMISED_IR,
        Silent(),
    )["s"]
    assert [found[one.id].verdict.value for one in mutants] == expected
    twins = {one.duplicate_of for one in found.values()}
    assert twins == ({"", "another"} if operation else {""})
