"""Claims about places of tensors that hold no part of the input."""

from __future__ import annotations

import torch

from gatecert.oracle.case import parse_case
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation

PAGED = get_operation("paged_attention")
CASE = "paged_attention/bfloat16/B=3,G=1,H=2,D=16,P=3,Z=8/{layout}/normal/seed=0"


def used_slots(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """[pages, page size]: which slots hold a key, counted one by one."""
    used = torch.zeros(tensors["keys"].shape[:2], dtype=torch.bool)
    for row, length in zip(tensors["table"].tolist(), tensors["lengths"].tolist(), strict=True):
        for at in range(length):
            used[row[at // 8], at % 8] = True
    return used


def test_every_slot_of_a_cache_that_holds_no_key_is_nan_and_no_other() -> None:
    tensors = make_inputs(PAGED, parse_case(CASE.format(layout="contiguous"))).tensors
    used = used_slots(tensors)
    assert used.any() and not used.all()
    for name in ("keys", "values"):
        assert torch.equal(tensors[name].isnan().all(dim=(2, 3)), ~used)
        assert torch.equal(tensors[name].isnan().any(dim=(2, 3)), ~used)


def test_what_no_kernel_reads_does_not_reach_the_reference_or_its_allowance() -> None:
    case = parse_case(CASE.format(layout="contiguous"))
    (output,) = expect(PAGED, case, make_inputs(PAGED, case)).outputs
    assert torch.from_numpy(output.reference).isfinite().all()
    assert torch.from_numpy(output.shadow).isfinite().all()


def test_pages_that_share_their_memory_are_nan_only_where_no_page_is_read() -> None:
    tensors = make_inputs(PAGED, parse_case(CASE.format(layout="expanded"))).tensors
    used = used_slots(tensors)
    assert not tensors["keys"][used].isnan().any()


def test_tensors_that_are_written_out_stay_as_they_are() -> None:
    case = parse_case(CASE.format(layout="contiguous"))
    held = {"keys": make_inputs(PAGED, case).tensors["keys"].nan_to_num(0.5)}
    assert torch.equal(make_inputs(PAGED, case, held).tensors["keys"], held["keys"])
