"""Values written out in a case, and snapshots: the same inputs wherever they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.snapshot import load_snapshot, save_snapshot

SOFTMAX = get_operation("softmax")
LOSS = get_operation("cross_entropy")


def inputs(text: str):
    case = parse_case(text)
    return make_inputs(get_operation(case.operation), case)


def test_runs_of_one_value_are_short() -> None:
    text = "softmax/float32/B=2,N=3/contiguous/normal:x=4x0,-1.5,nan/seed=0"
    case = parse_case(text)
    assert case.id == text
    x = inputs(text).args[0]
    assert x.ravel()[:5].tolist() == [0, 0, 0, 0, -1.5]
    assert x[1, 2].isnan()


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-45, 3.4e38, -2.5, float("inf"), float("-inf")])
def test_a_value_survives_the_way_through_the_id(value: float) -> None:
    case = Case("softmax", (("B", 1), ("N", 1)), "float32", given=(("x", (value,)),))
    (x,) = make_inputs(SOFTMAX, parse_case(case.id)).args
    assert torch.equal(x, torch.tensor([[value]])) and bool(x.signbit()) == (str(value)[0] == "-")


def test_a_tensor_that_is_given_leaves_the_others_as_they_were() -> None:
    plain = inputs("cross_entropy/float32/B=2,V=3/contiguous/normal/seed=4")
    given = inputs("cross_entropy/float32/B=2,V=3/contiguous/normal:target=2,0/seed=4")
    assert torch.equal(given.tensors["logits"], plain.tensors["logits"])
    assert given.tensors["target"].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("normal:x", "'x' is not of the form tensor=value,value"),
        ("normal:x=1,b", "'b' is neither a number nor a run"),
        ("normal:x=0x1", "'0x1' is neither a number nor a run"),
        ("normal:x=1,2", r"argument x has shape \(2, 3\), which takes 6 values, not 2"),
        ("normal:y=6x1", "softmax has tensors x, not y"),
        ("norml:x=6x1", "did you mean 'normal'"),
    ],
)
def test_wrong_values_are_an_error_that_names_the_argument(part: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        inputs(f"softmax/float32/B=2,N=3/contiguous/{part}/seed=0")


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "expanded", "row_padded"])
def test_a_snapshot_gives_the_same_bits_and_strides_again(tmp_path: Path, layout: str) -> None:
    case = parse_case(f"cross_entropy/bfloat16/B=5,V=9/{layout}/nonfinite/seed=1")
    made = make_inputs(LOSS, case)
    save_snapshot(tmp_path / "deep" / "case.safetensors", case, made)
    again, tensors = load_snapshot(tmp_path / "deep" / "case.safetensors")
    assert again == case
    assert make_inputs(LOSS, again, tensors).sha256 == made.sha256


def test_a_snapshot_of_other_shapes_names_the_argument(tmp_path: Path) -> None:
    case = parse_case("softmax/float32/B=2,N=3/contiguous/normal/seed=0")
    made = make_inputs(SOFTMAX, case)
    with pytest.raises(UsageError, match=r"argument x must have shape \(2, 4\), not \(2, 3\)"):
        make_inputs(
            SOFTMAX,
            parse_case("softmax/float32/B=2,N=4/contiguous/normal/seed=0"),
            made.tensors,
        )
    with pytest.raises(UsageError, match=r"argument x must have dtype torch\.float16"):
        make_inputs(
            SOFTMAX,
            parse_case("softmax/float16/B=2,N=3/contiguous/normal/seed=0"),
            made.tensors,
        )


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 no tensors"])
def test_a_file_that_is_no_snapshot_is_a_clear_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "case.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="not a snapshot"):
        load_snapshot(path)


def test_the_hash_covers_strides_as_well_as_values() -> None:
    name = "softmax/float32/B=2,N=3/{}/normal:x=1,2,3,4,5,6/seed=0"
    hashes = {inputs(name.format(layout)).sha256 for layout in ("contiguous", "row_padded")}
    assert len(hashes) == 2
