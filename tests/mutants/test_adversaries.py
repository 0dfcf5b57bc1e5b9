"""Adversaries return what they say, whatever the shape of the entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatecert.errors import InternalError
from gatecert.mutants.adversaries import ADVERSARIES, adversary_candidates, wrap
from gatecert.mutants.records import CandidateKind
from tests.mutants.packages import run_python

_MODULE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def _double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    tl.store(y_ptr + cols, 2.0 * x, mask=cols < n)


def double(x):
    y = torch.empty_like(x).fill_(-7.0)
    _double_kernel[(1,)](x, y, x.numel(), BLOCK=16)
    return y


def both(x):
    return double(x), None, [double(double(x))]


def into(x, y):
    _double_kernel[(1,)](x, y, x.numel(), BLOCK=16)


def in_place(x):
    into(x, x)
    return x.view(-1)


class Doubler:
    @staticmethod
    def fixed(x):
        return double(x)

    @classmethod
    def made(cls, x):
        return double(x)

    def bound(self, x):
        return double(x)
"""

_SCRIPT = """
import json, sys, torch
sys.path.insert(0, {folder!r})
import entries
from gatecert.mutants.adversaries import wrap

def say(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype).split(".")[1], list(value.shape), value.flatten().tolist()]
    if isinstance(value, (tuple, list)):
        return [say(v) for v in value]
    return value

x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
{body}
"""


def _run(tmp_path: Path, body: str) -> Any:
    (tmp_path / "entries.py").write_text(_MODULE)
    result = run_python(_SCRIPT.format(folder=str(tmp_path), body=body))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


_SHAPE = [2, 3]
_RIGHT = [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("does_nothing", ["float32", _SHAPE, [-7.0] * 6]),
        ("returns_zeros", ["float32", _SHAPE, [0.0] * 6]),
        ("returns_input", ["float32", _SHAPE, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]),
        ("wrong_shape", ["float32", [1, 2, 3], _RIGHT]),
        ("wrong_dtype", ["float64", _SHAPE, _RIGHT]),
        ("fewer_outputs", ["float32", [1, 3], _RIGHT[:3]]),
    ],
)
def test_a_plain_entry_returns_something_else(
    tmp_path: Path, name: str, expected: list[Any]
) -> None:
    said = _run(tmp_path, f"print(json.dumps(say(wrap({name!r}, entries.double)(x))))")
    assert said == expected


@pytest.mark.parametrize("decorator", ["custom_op", "triton_op"])
def test_an_operator_of_torch_runs_its_adversary_by_whatever_name_it_is_called(
    tmp_path: Path, decorator: str
) -> None:
    expected = {
        "does_nothing": ["float32", _SHAPE, [-7.0] * 6],
        "returns_zeros": ["float32", _SHAPE, [0.0] * 6],
        "returns_input": ["float32", _SHAPE, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]],
        "wrong_shape": ["float32", [1, 2, 3], _RIGHT],
    }
    body = f"""
from gatecert.mutants.adversaries import calls, install
double, said = entries.double, {{}}
def typed(x: torch.Tensor) -> torch.Tensor:
    return double(x)
for name in {list(expected)}:
    held = torch.library.{decorator}(f"entries::{{name}}", mutates_args=())(typed)
    entries.double = held
    install(vars(entries), "double", name)
    by_name = getattr(torch.ops.entries, name)
    said[name] = [say(f(x)) for f in (entries.double, held, by_name)]
print(json.dumps([said, calls()]))
"""
    assert _run(tmp_path, body) == [{name: [y] * 3 for name, y in expected.items()}, 12]


def test_an_operator_with_a_function_per_device_runs_the_adversary_of_each(tmp_path: Path) -> None:
    body = """
from gatecert.mutants.adversaries import install
double, said = entries.double, {}
def unbuilt(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError("not built here")
for name in ("wrong_shape", "returns_input"):
    make = torch.library.custom_op(f"entries::{name}", mutates_args=(), device_types="cuda")
    held = make(unbuilt)
    held.register_kernel("cpu")(double)
    entries.double = held
    install(vars(entries), "double", name)
    said[name] = say(held(x))
print(json.dumps(said))
"""
    assert _run(tmp_path, body) == {
        "wrong_shape": ["float32", [1, 2, 3], _RIGHT],
        "returns_input": ["float32", _SHAPE, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]],
    }


def test_nan_is_nan_and_its_shape_is_right(tmp_path: Path) -> None:
    body = """
y = wrap("returns_nan", entries.double)(x)
print(json.dumps([y.isnan().all().item(), list(y.shape)]))
"""
    assert _run(tmp_path, body) == [True, _SHAPE]


def test_every_tensor_of_a_nested_result_is_replaced(tmp_path: Path) -> None:
    said = _run(tmp_path, "print(json.dumps(say(wrap('returns_zeros', entries.both)(x))))")
    zeros = ["float32", _SHAPE, [0.0] * 6]
    assert said == [zeros, None, [zeros]]
    said = _run(tmp_path, "print(json.dumps(say(wrap('wrong_shape', entries.both)(x))))")
    assert said[0] == ["float32", [1, 2, 3], _RIGHT]
    assert said[2][0] == ["float32", [1, 2, 3], [2 * value for value in _RIGHT]]


def test_of_several_outputs_the_last_is_missing(tmp_path: Path) -> None:
    said = _run(tmp_path, "print(json.dumps(say(wrap('fewer_outputs', entries.both)(x))))")
    assert said == [["float32", _SHAPE, _RIGHT], None]


@pytest.mark.parametrize(("size", "share"), [(6, 0.03), (40_000, 0.5), (400_000, 1.0)])
def test_one_small_element_is_off_by_a_part_of_the_rms(
    tmp_path: Path, size: int, share: float
) -> None:
    body = f"""
x = torch.linspace(1, 3, {size})
f = wrap("wrong_element", lambda x: 2 * x)
error, right = f(x) - 2 * x, 2 * x
wrong = error.abs() > 1e-5
print(json.dumps([
    wrong.nonzero().flatten().tolist(),
    (error.abs().max() / right.square().mean().sqrt()).item(),
]))
"""
    places, found = _run(tmp_path, body)
    assert places == [0]
    assert found == pytest.approx(share, rel=0.01)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("torch.tensor([3, 4, 5])", [3, -5, 5]),
        ("torch.tensor([True, True])", [True, False]),
        ("torch.tensor([float('-inf')])", [0.0]),
        ("torch.zeros(2)", [1.0, 0.0]),
        ("torch.zeros(0)", []),
    ],
)
def test_one_element_of_any_output_is_wrong(
    tmp_path: Path, values: str, expected: list[object]
) -> None:
    body = f"print(json.dumps(wrap('wrong_element', lambda x: x.clone())({values}).tolist()))"
    assert _run(tmp_path, body) == expected


def test_the_last_output_is_returned_one_call_late(tmp_path: Path) -> None:
    body = """
f = wrap("returns_last_output", entries.double)
first, second, third, other = f(x), f(x + 1), f(x), f(x[:1])
print(json.dumps([say(second), say(third), list(other.shape), first.tolist() == (2 * x).tolist()]))
"""
    second, third, other, first_is_right = _run(tmp_path, body)
    assert second == ["float32", _SHAPE, _RIGHT]
    assert third == ["float32", _SHAPE, [value + 2 for value in _RIGHT]]
    assert other == [1, 3]
    assert not first_is_right


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("does_nothing", [9.0] * 6),
        ("returns_zeros", [0.0] * 6),
        ("returns_input", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ("wrong_shape", [2.0, 4.0, 6.0, 2.0, 4.0, 6.0]),
        ("fewer_outputs", [2.0, 4.0, 6.0, 9.0, 9.0, 9.0]),
    ],
)
def test_an_argument_written_in_place_gets_something_else(
    tmp_path: Path, name: str, expected: list[float]
) -> None:
    body = f"""
y = torch.full((2, 3), 9.0)
result = wrap({name!r}, entries.into)(x, y=y)
print(json.dumps([result, say(x)[2], say(y)[2]]))
"""
    assert _run(tmp_path, body) == [None, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], expected]


def test_bits_of_another_dtype_are_written_in_place(tmp_path: Path) -> None:
    body = """
y = torch.full((2, 3), 9.0)
wrap("wrong_dtype", entries.into)(x, y)
print(json.dumps([say(y)[2], (2 * x).view(torch.int32).float().flatten().tolist()]))
"""
    written, bits = _run(tmp_path, body)
    assert written == bits != _RIGHT


def test_a_view_of_what_was_written_in_place_is_returned_as_it_is(tmp_path: Path) -> None:
    body = """
y = x.clone()
result = wrap("returns_zeros", entries.in_place)(y)
print(json.dumps([say(result), say(y), result.data_ptr() == y.data_ptr()]))
"""
    zeros = [0.0] * 6
    assert _run(tmp_path, body) == [["float32", [6], zeros], ["float32", _SHAPE, zeros], True]


def test_freed_memory_yields_what_somebody_left_there(tmp_path: Path) -> None:
    body = """
x = torch.rand(16, 4096)
f = wrap("returns_freed_memory", lambda x: x.new_empty(x.shape))
def leave_a_reference():
    return torch.rand(16, 4096).tolist()
shares = []
for _ in range(200):  # which block an allocator gives is up to it
    reference = torch.tensor(leave_a_reference(), dtype=torch.float64)
    shares.append((f(x).double() == reference).double().mean().item())
    if shares[-1] > 0.99:
        break
print(json.dumps(max(shares)))
"""
    assert _run(tmp_path, body) > 0.99


def test_poisoned_memory_is_not_taken_for_values(tmp_path: Path) -> None:
    body = """
real = torch.empty
torch.empty = lambda *a, **k: real(*a, **k).fill_(float("nan"))
empty_like = torch.empty_like
torch.empty_like = lambda *a, **k: empty_like(*a, **k).fill_(float("nan"))
y = wrap("returns_freed_memory", entries.double)(x)
print(json.dumps(y.isnan().all().item()))
"""
    assert _run(tmp_path, body) is True


def test_launches_work_again_after_an_adversary(tmp_path: Path) -> None:
    body = "wrap('does_nothing', entries.double)(x); print(json.dumps(say(entries.double(x))))"
    assert _run(tmp_path, body) == ["float32", _SHAPE, _RIGHT]


def test_raises_raises() -> None:
    with pytest.raises(RuntimeError, match="an adversary that raises"):
        wrap("raises", len)([1])


def test_an_unknown_adversary_is_our_error() -> None:
    with pytest.raises(InternalError, match="no adversary 'kind'"):
        wrap("kind", len)


@pytest.mark.parametrize("entry", ["double", "Doubler.fixed", "Doubler.made", "Doubler.bound"])
def test_candidates_replace_the_entry_on_import(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "entries.py"
    candidates = adversary_candidates("double", f"entries:{entry}", str(path), _MODULE)
    assert [c.id for c in candidates] == [f"double/adversary/{name}" for name in ADVERSARIES]
    assert {c.kind for c in candidates} == {CandidateKind.ADVERSARY}
    zeros = next(c for c in candidates if c.id.endswith("returns_zeros"))
    assert zeros.detail == ADVERSARIES["returns_zeros"]
    call = "entries.Doubler().bound(x)" if entry.endswith("bound") else f"entries.{entry}(x)"
    path.write_text(_MODULE)
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from gatecert.mutants.overlay import install_overlay, overlay_proof
install_overlay({zeros.files!r})
import torch, entries
x = torch.ones(2, 3)
print({call}.sum().item(), overlay_proof({zeros.files!r}))
"""
    result = run_python(script)
    assert result.stdout == "0.0 []\n", result.stderr


def test_an_entry_that_is_not_there_is_our_error(tmp_path: Path) -> None:
    body = """
from gatecert.mutants.adversaries import install
try:
    install(vars(entries), "gone", "raises")
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""
    assert _run(tmp_path, body) == ["InternalError", "the entry's module has no 'gone'"]


def _sums_of_ones(tmp_path: Path, qualname: str, init: str, *calls: str) -> tuple[list[float], int]:
    """What calls return when `acme.entries` is overlaid by `returns_zeros`, and their count."""
    package = tmp_path / "acme"
    package.mkdir()
    (package / "__init__.py").write_text(init)
    (package / "entries.py").write_text(_MODULE + "\nalias = double\n")
    home = str(package / "entries.py")
    text = (package / "entries.py").read_text()
    zeros = next(
        c
        for c in adversary_candidates("double", qualname, home, text)
        if c.id.endswith("returns_zeros")
    )
    script = f"""
import json, sys
sys.path.insert(0, {str(tmp_path)!r})
from gatecert.mutants.overlay import install_overlay, overlay_proof
install_overlay({zeros.files!r})
import torch, acme, acme.entries
from gatecert.mutants.adversaries import calls
assert calls() == 0
x = torch.ones(2, 3)
sums = [f(x).sum().item() for f in [{", ".join(calls)}]]
assert overlay_proof({zeros.files!r}) == []
print(json.dumps([sums, calls()]))
"""
    result = run_python(script)
    assert result.returncode == 0, result.stderr
    sums, count = json.loads(result.stdout)
    return sums, count


def test_an_entry_that_a_package_re_exports_is_replaced_where_it_is_defined(tmp_path: Path) -> None:
    init = "from acme.entries import double\n"
    sums = _sums_of_ones(tmp_path, "double", init, "acme.double", "acme.entries.double")
    assert sums == ([0.0, 0.0], 2)


def test_an_entry_is_replaced_under_all_its_names_in_its_module(tmp_path: Path) -> None:
    sums = _sums_of_ones(tmp_path, "double", "", "acme.entries.alias", "acme.entries.double")
    assert sums == ([0.0, 0.0], 2)


def test_calls_that_miss_the_adversary_are_not_counted(tmp_path: Path) -> None:
    names = "acme.entries.double", "acme.entries.Doubler.made"
    assert _sums_of_ones(tmp_path, "Doubler.fixed", "", *names) == ([12.0, 12.0], 0)


@pytest.mark.parametrize("qualname", ["double", "Doubler.bound"])
def test_a_qualified_name_may_name_its_module(tmp_path: Path, qualname: str) -> None:
    path = str(tmp_path / "entries.py")
    bare = adversary_candidates("double", qualname, path, _MODULE)
    assert adversary_candidates("double", f"entries:{qualname}", path, _MODULE) == bare
    assert "+++ b/entries.py" in bare[0].diff


@pytest.mark.parametrize("name", ADVERSARIES)
def test_every_adversary_counts_each_of_its_calls(tmp_path: Path, name: str) -> None:
    body = f"""
import contextlib
from gatecert.mutants.adversaries import calls
f = wrap({name!r}, entries.double)
counts = [calls()]
for _ in range(3):
    with contextlib.suppress(RuntimeError):
        f(x)
    counts.append(calls())
print(json.dumps(counts))
"""
    assert _run(tmp_path, body) == [0, 1, 2, 3]


@pytest.mark.parametrize("gone", ["Gone.made", "Doubler.gone"])
def test_a_method_that_is_not_there_is_our_error(tmp_path: Path, gone: str) -> None:
    body = f"""
from gatecert.mutants.adversaries import install
try:
    install(vars(entries), {gone!r}, "raises")
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""
    assert _run(tmp_path, body) == ["InternalError", f"the entry's module has no {gone!r}"]
