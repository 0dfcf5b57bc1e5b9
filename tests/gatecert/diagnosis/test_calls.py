"""Claims about calls that are captured while a gate runs."""

from __future__ import annotations

from pathlib import Path

import torch

from gatecert.diagnosis.calls import Again, CallCapture, Cut, Kept, NotKept, read_calls
from gatecert.diagnosis.values import made


def called(capture: CallCapture, *args: object, **kwargs: object) -> None:
    capture.entering(args, kwargs)
    capture.left(None, None)


def test_a_call_is_kept_as_it_was_before_it_changed_its_arguments(tmp_path: Path) -> None:
    x = torch.ones(3)
    capture = CallCapture(str(tmp_path / "calls"))
    capture.entering((x,), {"scale": 2.0})
    x.zero_()
    capture.left(None, None)
    (call,) = read_calls(tmp_path / "calls")
    assert isinstance(call, Kept)
    assert torch.equal(made(call.args[0], {}), torch.ones(3))
    assert made(call.kwargs, {}) == {"scale": 2.0}


def test_equal_calls_are_kept_once(tmp_path: Path) -> None:
    capture = CallCapture(str(tmp_path / "calls"))
    for _ in range(3):
        called(capture, torch.ones(2))
    kinds = [type(record) for record in read_calls(tmp_path / "calls")]
    assert kinds == [Kept, Again, Again]


def test_a_call_that_the_entry_makes_of_itself_is_not_the_gates(tmp_path: Path) -> None:
    capture = CallCapture(str(tmp_path / "calls"))
    capture.entering((1,), {})
    called(capture, 2)
    capture.left(None, None)
    assert len(list(read_calls(tmp_path / "calls"))) == 1


def test_what_there_is_no_memory_for_is_cut_and_counted(tmp_path: Path) -> None:
    few = CallCapture(str(tmp_path / "few"), most_calls=1)
    small = CallCapture(str(tmp_path / "small"), most_bytes=500)
    for number in range(3):
        called(few, number)
        called(small, torch.ones(40 * number))
    assert [type(one) for one in read_calls(tmp_path / "few")] == [Kept, Cut, Cut]
    assert [type(one) for one in read_calls(tmp_path / "small")] == [Kept, Kept, Cut]


def test_a_call_with_an_argument_that_cannot_be_kept_says_which(tmp_path: Path) -> None:
    capture = CallCapture(str(tmp_path / "calls"))
    called(capture, object())
    (record,) = read_calls(tmp_path / "calls")
    assert record == NotKept("a builtins.object")


def test_what_was_written_before_a_process_died_is_read(tmp_path: Path) -> None:
    path = tmp_path / "calls"
    capture = CallCapture(str(path))
    called(capture, 1)
    called(capture, 2)
    path.write_bytes(path.read_bytes()[:-3])
    assert len(list(read_calls(path))) == 1
    assert list(read_calls(tmp_path / "none")) == []
