"""A log of production shapes: recorded without touching the job, and tried by the oracle."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import gatecert
from gatecert.launch_log import read_launch_log


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    module = types.ModuleType("acme_recorded")
    source = (
        "def softmax(x): return x\n"
        "def rms_norm(x, w, epsilon=0.25): return x\n"
        "class Norm:\n"
        "    @classmethod\n"
        "    def apply(cls, x): return cls.__name__\n"
    )
    exec(source, module.__dict__)
    monkeypatch.setitem(sys.modules, "acme_recorded", module)
    yield module


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def recorded(path: Path, call: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The one line that a call of a function of the module leaves."""
    operation = call.__name__
    entry = f"{call.__module__}:{call.__qualname__}"
    with gatecert.record_launches(path, entries={entry: operation}):
        getattr(sys.modules[call.__module__], call.__name__)(*args, **kwargs)
    (line,) = lines(path)
    return line


def test_equal_calls_are_one_line_with_their_count(tmp_path: Path, acme: Any) -> None:
    log = tmp_path / "logs" / "launches.jsonl"
    bound = acme.softmax
    other = types.ModuleType("acme_user")
    other.softmax = bound
    sys.modules["acme_user"] = other
    try:
        with gatecert.record_launches(log, entries={"acme_recorded:softmax": "softmax"}):
            for _ in range(3):
                acme.softmax(torch.zeros(4, 129, dtype=torch.float16))
            other.softmax(torch.zeros(2, 8))
        assert acme.softmax is bound and other.softmax is bound
    finally:
        del sys.modules["acme_user"]
    acme.softmax(torch.zeros(1, 1))
    assert [(line["count"], line["dims"], line["dtype"]) for line in lines(log)] == [
        (3, {"B": 4, "N": 129}, "float16"),
        (1, {"B": 2, "N": 8}, "float32"),
    ]


def test_several_runs_append_and_their_counts_add_up(tmp_path: Path, acme: Any) -> None:
    log = tmp_path / "launches.jsonl"
    for _ in range(2):
        with gatecert.record_launches(log, entries={"acme_recorded:softmax": "softmax"}):
            acme.softmax(torch.zeros(4, 129))
    with log.open("a") as file:
        file.write('{"operation":"softm')  # a job that was killed while it wrote
    (record,), notes = read_launch_log(log)
    assert record.count == 2
    assert notes == ["1 lines are no record, the first is 3"]


@pytest.mark.parametrize(
    ("tensor", "layout"),
    [
        (torch.zeros(6, 9), "contiguous"),
        (torch.zeros(9, 6).t(), "transposed"),
        (torch.zeros(6, 16)[:, :9], "row_padded"),
        (torch.zeros(8, 16)[1:7, 3:12], "sliced"),
        (torch.zeros(57)[3:].view(6, 9), "offset_base"),
        (torch.zeros(1, 9).expand(6, 9), "expanded"),
        (torch.zeros(6, 18)[:, ::2], "spread"),
    ],
)
def test_a_layout_is_told_by_strides_alone(
    tmp_path: Path, acme: Any, tensor: torch.Tensor, layout: str
) -> None:
    line = recorded(tmp_path / "log", acme.softmax, tensor)
    assert line.get("layout", "contiguous") == layout


def test_the_functions_own_default_is_recorded_not_the_references(
    tmp_path: Path, acme: Any
) -> None:
    line = recorded(tmp_path / "log", acme.rms_norm, torch.zeros(2, 8), w=torch.zeros(8))
    assert line["scalars"] == {"eps": 0.25}
    assert line["dims"] == {"B": 2, "N": 8}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            (torch.zeros(2, 3, 4), torch.zeros(4)),
            "argument x: expected shape [B, N], has (2, 3, 4)",
        ),
        (
            (torch.zeros(2, 8), torch.zeros(9)),
            "argument weight: expected shape [N] = [8], has (9,)",
        ),
        (
            (torch.zeros(2, 8), torch.zeros(8, dtype=torch.float16)),
            "argument weight: expected dtype float32, as x has, has float16",
        ),
        (
            (torch.zeros(2, 8), torch.zeros(8), torch.tensor(1.0)),
            "argument eps: expected a number, is a tensor",
        ),
        ((torch.zeros(2, 8), None), "argument weight: expected a tensor [N], not given"),
        ((torch.zeros(2, 8), [1.0]), "argument weight: expected a tensor [N], is a list"),
    ],
)
def test_a_call_that_does_not_fit_says_which_argument_and_why(
    tmp_path: Path, acme: Any, args: tuple[Any, ...], said: str
) -> None:
    line = recorded(tmp_path / "log", acme.rms_norm, *args)
    assert line["misfit"] == said
    assert line["arguments"]["x"]["shape"] == list(args[0].shape)


def test_a_class_method_is_recorded_through_its_class(tmp_path: Path, acme: Any) -> None:
    log = tmp_path / "log"
    with gatecert.record_launches(log, entries={"acme_recorded:Norm.apply": "softmax"}):
        assert acme.Norm.apply(torch.zeros(2, 8)) == "Norm"
    assert acme.Norm.apply(torch.zeros(2, 8)) == "Norm"
    assert [line["count"] for line in lines(log)] == [1]


def test_a_decorated_function_returns_and_raises_as_before(tmp_path: Path) -> None:
    @gatecert.record_launches(tmp_path / "log", operation="softmax")
    def half(x: torch.Tensor) -> int:
        """Docs."""
        return 1 // len(x)

    assert half.__doc__ == "Docs."
    assert half(torch.zeros(1, 4)) == 1
    with pytest.raises(ZeroDivisionError):
        half(torch.zeros(0, 4))


def test_trouble_with_the_log_is_said_at_the_end_and_never_raised(
    tmp_path: Path, acme: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    entries = {"acme_recorded:softmax": "softmax", "nowhere:softmax": "softmax"}
    with gatecert.record_launches(tmp_path / "file" / "log", entries=entries):
        assert acme.softmax(torch.zeros(2, 4)).shape == (2, 4)
    said = capsys.readouterr().err
    assert "2 errors, the first: ModuleNotFoundError" in said


def test_an_argument_that_cannot_be_looked_at_leaves_the_call_alone(
    tmp_path: Path, acme: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    class Odd(torch.Tensor):
        def stride(self, dim: Any = None) -> Any:
            raise RuntimeError("no strides here")

    odd = torch.zeros(2, 4).as_subclass(Odd)
    with gatecert.record_launches(tmp_path / "log", entries={"acme_recorded:softmax": "softmax"}):
        assert acme.softmax(odd) is odd
    assert "1 errors" in capsys.readouterr().err


def test_no_value_of_a_tensor_is_read(tmp_path: Path, acme: Any) -> None:
    # A meta tensor has no values: whoever asked for one, as a synchronisation does, would raise.
    line = recorded(tmp_path / "log", acme.softmax, torch.zeros(2, 4, device="meta"))
    assert line["dims"] == {"B": 2, "N": 4}


def test_a_forked_child_writes_its_own_calls_only(tmp_path: Path, acme: Any) -> None:
    log = tmp_path / "log"
    with gatecert.record_launches(log, entries={"acme_recorded:softmax": "softmax"}) as recorder:
        acme.softmax(torch.zeros(2, 4))
        pid = os.fork()
        if pid == 0:
            acme.softmax(torch.zeros(3, 4))
            recorder.flush()
            os._exit(0)
        os.waitpid(pid, 0)
    assert sorted((line["dims"]["B"], line["count"]) for line in lines(log)) == [(2, 1), (3, 1)]


def test_a_worker_writes_its_calls_when_it_ends(tmp_path: Path, acme: Any) -> None:
    log = tmp_path / "log"
    with gatecert.record_launches(log, entries={"acme_recorded:softmax": "softmax"}):
        worker = multiprocessing.get_context("fork").Process(
            target=lambda: acme.softmax(torch.zeros(3, 4))
        )
        worker.start()
        worker.join()
    assert [(line["dims"]["B"], line["count"]) for line in lines(log)] == [(3, 1)]


def test_a_compiled_region_is_traced_as_if_nothing_were_recorded(tmp_path: Path, acme: Any) -> None:
    log = tmp_path / "log"
    with gatecert.record_launches(log, entries={"acme_recorded:softmax": "softmax"}):
        compiled = torch.compile(lambda x: acme.softmax(x) + 1, backend="eager", fullgraph=True)
        assert torch.equal(compiled(torch.zeros(2, 4)), torch.ones(2, 4))
    assert not log.exists()


def test_a_subjects_entries_are_taken_from_its_configuration(tmp_path: Path, acme: Any) -> None:
    config = tmp_path / "gatecert.toml"
    config.write_text('[subject.mine]\noperation = "softmax"\nentry = "acme_recorded:softmax"\n')
    with gatecert.record_launches(tmp_path / "log", config=config):
        acme.softmax(torch.zeros(2, 4))
    (line,) = lines(tmp_path / "log")
    assert (line["subject"], line["entry"]) == ("mine", "acme_recorded:softmax")
