"""Which calls of a log the oracle tries, and what is said of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatecert.config import load_config
from gatecert.errors import UsageError
from gatecert.gates.oracle import OracleGate
from gatecert.launch_log import LaunchRecord, choose_shapes
from gatecert.subjects import Subject


def record(b: int, n: int, count: int = 1, **changes: Any) -> LaunchRecord:
    fields: dict[str, Any] = {"operation": "softmax", "dtype": "float32", "count": count}
    return LaunchRecord(dims={"B": b, "N": n}, **{**fields, **changes})


def choose(*records: LaunchRecord, most: int = 12) -> tuple[list[tuple[int, ...]], tuple[str, ...]]:
    chosen, notes = choose_shapes(
        records,
        operation="softmax",
        subject="mine",
        dtypes=("float32", "float16"),
        layouts=("contiguous", "row_padded"),
        most=most,
    )
    return [tuple(size for _, size in shape.dims) for shape in chosen], notes


def test_the_most_frequent_come_first_and_extremes_are_kept() -> None:
    usual = [record(8, 512 + n, count=100 - n) for n in range(10)]
    shapes, notes = choose(*usual, record(8, 1), record(8, 50257), record(4096, 600), most=8)
    assert shapes[0] == (8, 512)
    assert {(8, 1), (8, 50257), (4096, 600)} <= set(shapes)
    assert notes == (
        "5 of 13 distinct calls (465 of 958 in number) are left out: the most frequent and the "
        "extreme ones are tried",
    )


def test_calls_outside_the_declared_domain_are_said_and_not_tried() -> None:
    shapes, notes = choose(
        record(2, 8, 5, dtype="bfloat16"),
        record(3, 8, 4, layout="transposed"),
        record(0, 0, 3, misfit="argument x: expected shape [B, N], has (1, 2, 3)"),
        record(9, 9, operation="rms_norm"),
        record(9, 9, subject="other"),
    )
    assert shapes == [(3, 8)]
    assert notes == (
        "5 calls have dtype bfloat16, which is not declared",
        "4 calls have layout transposed, which is not declared; tried contiguous",
        "3 calls do not fit the schema: argument x: expected shape [B, N], has (1, 2, 3)",
    )


def write(folder: Path, lines: list[dict[str, Any]], extra: str = "") -> Path:
    (folder / "launches.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = folder / "gatecert.toml"
    path.write_text(
        '[subject.mine]\noperation = "softmax"\nentry = "acme:softmax"\n'
        f'launch_log = "launches.jsonl"\n{extra}'
    )
    return path


def subject_of(folder: Path, lines: list[dict[str, Any]], extra: str = "") -> Subject:
    (subject,) = load_config(write(folder, lines, extra)).subjects
    return subject


LINE = {"operation": "softmax", "count": 7, "dims": {"B": 5, "N": 77}, "dtype": "float32"}


def test_a_logged_shape_is_a_case_of_the_oracle(tmp_path: Path) -> None:
    subject = subject_of(tmp_path, [LINE, LINE])
    prepared = OracleGate().prepare(subject, seed=3, quick=False)
    own = [one.case.id for one in prepared.cases if one.case.sizes == {"B": 5, "N": 77}]
    assert own == [
        f"softmax/float32/B=5,N=77/contiguous/{recipe}/seed=3"
        for recipe in ("normal", "large_offset")
    ]


def test_further_calls_of_one_shape_change_no_verdicts_key(tmp_path: Path) -> None:
    first = subject_of(tmp_path, [LINE])
    assert subject_of(tmp_path, [LINE, LINE, LINE]) == first


def test_a_profile_of_listed_sizes_takes_them_from_the_log_alone(tmp_path: Path) -> None:
    subject = subject_of(tmp_path, [LINE], 'profile = "vendor-call"\n')
    prepared = OracleGate().prepare(subject, seed=0, quick=False)
    assert {tuple(one.case.sizes.items()) for one in prepared.cases} == {(("B", 5), ("N", 77))}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "subject.mine.launch_log"),
        ("not json\n", "line 1 is no record of a launch"),
    ],
)
def test_a_log_that_cannot_be_read_is_a_clear_error(
    tmp_path: Path, text: str | None, said: str
) -> None:
    path = write(tmp_path, [])
    log = tmp_path / "launches.jsonl"
    log.unlink()
    if text is not None:
        log.write_text(text)
    with pytest.raises(UsageError, match=said):
        load_config(path)
