"""Claims about arguments as plain data."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch

from gatecert.diagnosis.values import Unkept, Value, kept, made, tensors_in
from gatecert.oracle.layouts import placement_of


def again(thing: object) -> object:
    """The thing written down and read back."""
    body = msgspec.msgpack.encode(kept(thing, {}))
    return made(msgspec.msgpack.decode(body, type=Value), {})


def test_a_tensor_comes_back_with_its_bits_and_its_place_in_memory() -> None:
    big = torch.arange(40, dtype=torch.bfloat16).reshape(4, 10)
    for tensor in (big, big.t(), big[1:3, 2:7], big[0, 0], torch.empty(0, 3), big > 3):
        back = again(tensor)
        assert isinstance(back, torch.Tensor)
        assert torch.equal(back, tensor)
        assert back.dtype is tensor.dtype
        assert placement_of(back).strides == tuple(tensor.stride())
        assert back.storage_offset() == tensor.storage_offset()


def test_an_expanded_row_comes_back_with_its_stride_of_0() -> None:
    row = torch.tensor([1.0, math.nan, 3.0]).expand(5, 3)
    back = again(row)
    assert isinstance(back, torch.Tensor)
    assert back.stride() == (0, 1)
    assert torch.equal(back.nan_to_num(7.0), row.nan_to_num(7.0))


def test_numbers_texts_dtypes_and_what_holds_them_come_back() -> None:
    things = {"a": (1, 2.5, None), "b": [True, "text", torch.float16], "c": -math.inf}
    assert again(things) == things


def test_one_tensor_given_twice_comes_back_as_one() -> None:
    x = torch.ones(3)
    first, second = made(kept((x, x), {}), {})
    assert first is second


def test_what_requires_a_gradient_does_so_again() -> None:
    back = again(torch.ones(3, requires_grad=True))
    assert isinstance(back, torch.Tensor)
    assert back.requires_grad


def test_an_object_of_another_kind_is_refused_by_its_name() -> None:
    with pytest.raises(Unkept, match=r"a torch\.nn\.modules\.linear\.Linear"):
        kept((1, torch.nn.Linear(2, 2)), {})


def test_tensors_are_found_wherever_they_are_held() -> None:
    value = kept({"a": [torch.ones(1), (torch.zeros(2),)]}, {})
    assert [tensor.shape for tensor in tensors_in(value)] == [(1,), (2,)]
