"""Claims about names and tables of gates."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from gatecert.errors import UsageError
from gatecert.gates.config import GateConfig
from gatecert.gates.oracle import OracleGate
from gatecert.gates.registry import built_in_names, check_gate_name, make_gate
from gatecert.oracle.strategies import STRATEGIES
from gatecert.subjects import Subject
from tests.e2e.commands import environment


def test_built_in_gates_are_the_oracle_the_relations_and_the_presets() -> None:
    assert built_in_names() == (
        "oracle",
        "metamorphic",
        "allclose-one-shape",
        "kernelbench-v0",
        "kernelbench",
        "gpuemu",
    )
    assert [make_gate(name, None, ".").name for name in built_in_names()] == [*built_in_names()]


def test_naming_a_gate_imports_neither_torch_nor_triton() -> None:
    code = (
        "import sys; import gatecert.campaign.run, gatecert.certificate\n"
        "from gatecert.gates.config import GateConfig\n"
        "from gatecert.gates.registry import built_in_names, make_gate\n"
        "from gatecert.subjects import Subject\n"
        "for name in built_in_names(): make_gate(name, None, '.')\n"
        "make_gate('oracle', None, '.').applies_to(Subject('s', 'm:f', 'softmax'))\n"
        "make_gate('tests', GateConfig('pytest'), '.')\n"
        "make_gate('ours', GateConfig('callable', callable='m:f'), '.')\n"
        "print(sorted({'torch', 'triton', 'scipy.stats'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_an_unknown_gate_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown gate 'kernelbnch'; did you mean 'kernelbench'"):
        make_gate("kernelbnch", None, ".")
    with pytest.raises(UsageError, match=r"did you mean 'tests'"):
        check_gate_name("test", ["tests"])


def test_a_table_may_not_take_a_built_in_name() -> None:
    with pytest.raises(UsageError, match=r"'oracle-ours' is built in"):
        make_gate("oracle-ours", GateConfig("pytest"), ".")
    with pytest.raises(UsageError, match=r"'oracle' is built in; give \[gate\.oracle\] another"):
        make_gate("oracle", GateConfig("pytest"), ".")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_oracle_under_a_strategy_is_a_gate(strategy: str) -> None:
    gate = make_gate(f"oracle:{strategy}", None, ".")
    assert gate.name == f"oracle:{strategy}"
    loaded = OracleGate(gate.name, strategy)
    for operation in ("softmax", "embedding"):
        subject = Subject("s", "m:f", operation)
        assert gate.applies_to(subject) == loaded.applies_to(subject)


def test_an_unknown_strategy_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown strategy 'bundary'; did you mean 'boundary'"):
        make_gate("oracle:bundary", None, ".")
    with pytest.raises(UsageError, match=r"'oracle:exact' is built in"):
        make_gate("oracle:exact", GateConfig("pytest"), ".")


def test_a_strategy_applies_where_it_has_cases_and_says_why_not_elsewhere() -> None:
    softmax = Subject("s", "m:f", "softmax", dtypes=("bfloat16",))
    for strategy, why in (
        ("exact", "operation 'softmax' is neither linear nor selecting: none of it is exact"),
        ("single_dtype_f16", "strategy 'single_dtype_f16' is of float16 alone"),
        ("boundary", None),
        ("nan_injected", None),
    ):
        assert make_gate(f"oracle:{strategy}", None, ".").applies_to(softmax) == why
    matmul = Subject("m", "m:f", "matmul")
    assert make_gate("oracle:exact", None, ".").applies_to(matmul) is None


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"kind": "callable"}, r"needs callable = 'package\.module:function'"),
        ({"kind": "callable", "callable": "module.function"}, r"needs callable ="),
        ({"kind": "callable", "callable": "m:f", "args": ["-q"]}, r"args belongs to"),
        ({"kind": "pytest", "callable": "m:f"}, r"callable belongs to"),
        ({"kind": "pytset"}, r"pytset"),
        ({"kind": "pytest", "arg": []}, r"unknown field `arg`"),
        ({"kind": "pytest", "accept": [0, 1]}, r"accept belongs to a gate of kind 'command'"),
        ({"kind": "pytest", "baseline_runs": 0}, r"baseline_runs must be 1 to 20, not 0"),
        ({"kind": "callable", "callable": "m:f", "timeout_s": 3}, r"kind 'command' or 'sanitizer'"),
        ({"kind": "command"}, r"needs command = \['executable', 'argument', \.\.\.\]"),
        ({"kind": "command", "command": ["x"], "around": "y"}, r"around belongs to"),
        ({"kind": "command", "command": ["x"], "verdict": "text"}, r"Invalid enum value 'text'"),
        ({"kind": "command", "command": ["x"], "reject": [0]}, r"status 0 is in accept and in"),
        ({"kind": "command", "command": ["x"], "reject": []}, r"reject must list exit statuses"),
        ({"kind": "command", "command": ["x"], "reject": [256]}, r"reject must list exit statuses"),
        (
            {"kind": "command", "command": ["x"], "verdict": "json", "reject": [2]},
            r"verdict = 'json' has none",
        ),
        ({"kind": "command", "command": ["x"], "timeout_s": 0}, r"timeout_s must be more than 0"),
        ({"kind": "sanitizer"}, r"needs around = 'NAME' of a pytest or command gate"),
        ({"kind": "sanitizer", "around": "x", "tools": ["synccheck"]}, r"'synccheck' is not one"),
        ({"kind": "sanitizer", "around": "x", "tools": []}, r"name at least one of the tools"),
        ({"kind": "sanitizer", "around": "x", "rootdir": "y"}, r"rootdir belongs to"),
    ],
)
def test_a_table_that_does_not_fit_its_kind_is_refused(table: object, says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        msgspec.convert(table, GateConfig)
