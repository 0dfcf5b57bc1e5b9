"""Claims about the oracle: offsets past 2^31 are reached on the interpreter, in sparse memory."""

from __future__ import annotations

import resource

import pytest
import torch

from gatecert.gates.records import GateOutcome, Reason
from gatecert.oracle.case import parse_case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.inputs import changed_inputs, fresh_copy, make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.sparse import is_sparse, nonzero_gaps
from tests.gatecert.gates.asking import Judge
from tests.gatecert.gates.test_oracle_blind_spots import say

FAR = "transpose/float16/M=3,N=5/far_span:x/normal/seed=0"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("transpose", Reason.NONE),
        ("transpose_narrow", Reason.NONFINITE),
        ("transpose_writing", Reason.INPUT_CHANGED),
    ],
)
def test_an_offset_that_wraps_past_two_to_the_31_is_seen(
    judge: Judge, entry: str, reason: Reason, dtype: str
) -> None:
    near = say(judge, f"kernels_far_rows:{entry}", "transpose", dtype)
    assert near.outcome is GateOutcome.ACCEPTED
    layouts = ("contiguous", "far_span")
    verdict = say(judge, f"kernels_far_rows:{entry}", "transpose", dtype, layouts)
    assert verdict.reason is reason, verdict
    if reason is not Reason.NONE:
        assert "/far_span:x/" in verdict.case
    if reason is Reason.NONFINITE:
        # The wrapped row lies before its buffer, where reads are poison.
        assert any("load" in found.kind.value for found in verdict.findings)
    if reason is Reason.INPUT_CHANGED:
        assert verdict.detail == "wrote to x (outside its elements)"


def test_each_tensor_has_a_far_span_of_its_own_and_no_other_case_takes_the_layout() -> None:
    cases = cases_for(
        get_operation("matmul"), dtypes=("float16",), layouts=("contiguous", "far_span")
    )
    assert [case.layout for case in cases if "far_span" in case.layout] == [
        "far_span:a",
        "far_span:b",
    ]
    assert not any("far_span" in c.layout for c in cases_for(get_operation("matmul"), dtypes=("float16",)))  # fmt: skip # noqa: E501


def test_a_far_tensor_takes_next_to_no_memory_and_is_what_a_near_one_is() -> None:
    operation = get_operation("transpose")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    inputs = make_inputs(operation, parse_case(FAR))
    (x,) = inputs.args
    assert is_sparse(x)
    assert 2 * x.stride(0) > 2**31
    assert x.untyped_storage().nbytes() > 2**32
    near = make_inputs(operation, parse_case(FAR.replace("far_span:x", "contiguous"))).args[0]
    assert x.shape == near.shape and not torch.equal(x, torch.zeros_like(near))
    copy = fresh_copy(inputs)
    assert torch.equal(copy.args[0], x) and copy.args[0].data_ptr() != x.data_ptr()
    assert changed_inputs(inputs, copy) == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_a_write_between_far_elements_is_found_and_so_is_one_to_an_element() -> None:
    inputs = make_inputs(get_operation("transpose"), parse_case(FAR))
    gap = fresh_copy(inputs)
    flat = gap.args[0].as_strided((2**31 + 4000,), (1,))
    flat[2**31 + 17] = 1.0
    assert changed_inputs(inputs, gap) == ["x (outside its elements)"]
    assert nonzero_gaps(gap.args[0])[:, 0].tolist() == [2 * (2**31 + 17) + 1]
    element = fresh_copy(inputs)
    element.args[0][2, 4] = 9.0
    assert changed_inputs(inputs, element) == ["x"]
    assert changed_inputs(inputs, element, allowed=("x",)) == []


def test_a_limited_address_space_has_room_for_sparse_memory_and_gets_it_back() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = 32 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        inputs = make_inputs(get_operation("transpose"), parse_case(FAR))
        size = inputs.args[0].untyped_storage().nbytes()
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == limit + size
        del inputs
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == limit
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
