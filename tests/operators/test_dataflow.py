"""Definitions, names of calls, roles and flow in kernels of several spellings."""

from __future__ import annotations

import libcst as cst
import pytest

from gatecert.operators.facts.dataflow import Dataflow, ParameterKind, analyse
from gatecert.operators.facts.definitions import DefinitionKind
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.shapes import ShapeConflict, Typing, conflicts
from gatecert.operators.facts.softmax import rescales, stabilised_exponentials
from tests.operators import sample_kernels as samples


def flow_of(source: str) -> Dataflow:
    return analyse(samples.kernel(source))


def body(*lines: str) -> Dataflow:
    """The flow of a kernel with these lines."""
    text = "\n".join(f"    {line}" for line in lines)
    return flow_of(f"@triton.jit\ndef k(x_ptr, y_ptr, n, B: tl.constexpr):\n{text}\n")


def nodes(flow: Dataflow, text: str) -> list[cst.CSTNode]:
    return [n for n in flow.expressions() if flow.source(n) == text]


def last(flow: Dataflow, text: str) -> cst.CSTNode:
    return nodes(flow, text)[-1]


def reaching_texts(flow: Dataflow, name: cst.CSTNode) -> list[str]:
    assert isinstance(name, cst.Name)
    return [d.kind.value if d.value is None else flow.source(d.value) for d in flow.reaching(name)]


def test_a_use_sees_the_last_definition_before_it() -> None:
    flow = body("a = n + 1", "a = n + 2", "tl.store(y_ptr, a)")
    assert reaching_texts(flow, last(flow, "a")) == ["n + 2"]


def test_a_use_after_a_branch_sees_both_arms() -> None:
    flow = body("a = n", "if B > 1:", "    a = n + 1", "tl.store(y_ptr, a)")
    assert reaching_texts(flow, last(flow, "a")) == ["n", "n + 1"]


def test_an_arm_that_returns_does_not_reach_what_follows() -> None:
    flow = body("a = n", "if B > 1:", "    a = n + 1", "    return", "tl.store(y_ptr, a)")
    assert reaching_texts(flow, last(flow, "a")) == ["n"]


def test_a_use_in_a_loop_sees_the_turn_before() -> None:
    flow = body("a = n", "for i in range(n):", "    b = a", "    a = b + i", "tl.store(y_ptr, a)")
    assert reaching_texts(flow, nodes(flow, "a")[0]) == ["n", "b + i"]
    assert reaching_texts(flow, last(flow, "a")) == ["n", "b + i"]
    assert reaching_texts(flow, last(flow, "i")) == ["loop_variable"]


def test_a_value_that_breaks_out_of_a_loop_is_seen_behind_it() -> None:
    flow = body("a = n", "while n > 0:", "    a = n + 1", "    break", "tl.store(y_ptr, a)")
    assert reaching_texts(flow, last(flow, "a")) == ["n", "n + 1"]


def test_an_augmented_assignment_reads_its_old_value() -> None:
    flow = body("a = n", "a += 1", "tl.store(y_ptr, a)")
    (definition,) = flow.reaching(last(flow, "a"))  # type: ignore[arg-type]
    assert definition.kind is DefinitionKind.AUGMENTED
    assert reaching_texts(flow, nodes(flow, "a")[0]) == ["n"]


def test_tuples_are_assigned_part_by_part_where_the_parts_are_spelled_out() -> None:
    flow = body("a, b = n, n + 1", "c, d = tl.max(n, 0, return_indices=True)", "tl.store(b, d)")
    assert reaching_texts(flow, last(flow, "b")) == ["n + 1"]
    (definition,) = flow.reaching(last(flow, "d"))  # type: ignore[arg-type]
    assert definition.element == 1


def test_a_name_is_resolved_through_copies() -> None:
    flow = body("a = n * 2", "b = a", "c = b", "tl.store(y_ptr, c)")
    assert flow.source(flow.resolve(last(flow, "c"))) == "n * 2"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("tl.exp(n)", "exp"),
        ("tl.math.exp2(n)", "exp2"),
        ("triton.language.exp(n)", "exp"),
        ("n.exp()", "exp"),
        ("inverse_root(n)", "rsqrt"),
        ("libdevice.tanh(n)", "tanh"),
        ("tl.math.max(n, 1)", "maximum"),
        ("tl.max(n, 0)", "max"),
        ("max(n, 1)", "builtins.max"),
        ("n.to(tl.float32)", "to"),
        ("tl.cast(n, tl.float32)", "to"),
        ("float('-inf')", "builtins.float"),
        ("helper(n)", "helper.helper"),
        ("x_ptr.load([0])", "descriptor_load"),
    ],
)
def test_calls_have_canonical_names(call: str, name: str) -> None:
    flow = body(f"tl.store(y_ptr, {call})")
    assert flow.call_name(last(flow, call)) == name


def test_arguments_are_found_by_position_by_keyword_and_as_receiver() -> None:
    for spelling in ("tl.sum(n, 0)", "tl.sum(input=n, axis=0)", "n.sum(0)", "n.sum(axis=0)"):
        flow = body(f"tl.store(y_ptr, {spelling})")
        call = last(flow, spelling)
        assert isinstance(call, cst.Call)
        found = {a.parameter: flow.source(a.value) for a in flow.arguments(call)}
        assert found == {"input": "n", "axis": "0"}


def test_addresses_masks_and_stored_values_are_told_apart() -> None:
    flow = body("o = n * 2", "m = o < n", "v = tl.load(x_ptr + o, m)", "tl.store(y_ptr, v, m)")
    assert flow.sinks(last(flow, "n * 2")) == {Role.ADDRESS, Role.CONDITION}
    assert flow.sinks(last(flow, "o < n")) == {Role.MASK}
    assert flow.sinks(last(flow, "tl.load(x_ptr + o, m)")) == {Role.STORED}


def test_what_a_helper_is_given_for_its_effect_counts_as_output() -> None:
    flow = body("a = n * 2.0", "b = n * 3.0", "save(y_ptr, a)")
    assert flow.reaches_output(last(flow, "n * 2.0"))
    assert not flow.reaches_output(last(flow, "n * 3.0"))


def test_flow_goes_around_loops_only_where_values_are_carried() -> None:
    flow = flow_of(samples.MATMUL)
    dot = last(flow, "tl.dot(a, b, acc)")
    assert flow.flows_into(dot, dot)
    (load,) = (c for c in flow.calls("load") if flow.source(c).startswith("tl.load(b_ptrs"))
    assert flow.flows_into(load, dot)
    assert not flow.flows_into(load, load)


@pytest.mark.parametrize(
    ("source", "pointers", "scalars"),
    [
        (samples.MATMUL, {"a_ptr", "b_ptr", "c_ptr"}, {"K", "sa", "sb"}),
        (samples.LAYER_NORM, {"x_ptr", "w_ptr", "b_ptr", "y_ptr"}, {"N", "eps"}),
        (samples.ROWS_SOFTMAX, {"x_ptr", "y_ptr"}, {"M", "N"}),
    ],
)
def test_parameters_are_pointers_only_where_addresses_are_built_on_them(
    source: str, pointers: set[str], scalars: set[str]
) -> None:
    kinds = flow_of(source).parameters()
    assert {n for n, k in kinds.items() if k is ParameterKind.POINTER} == pointers
    assert {n for n, k in kinds.items() if k is ParameterKind.SCALAR} == scalars


def test_the_same_value_is_known_by_its_definitions_not_by_its_name() -> None:
    flow = body("a = tl.load(x_ptr)", "b = a", "p = a * b", "a = a + 1", "tl.store(y_ptr, p * a)")
    product, outer = last(flow, "a * b"), last(flow, "p * a")
    assert isinstance(product, cst.BinaryOperation)
    assert isinstance(outer, cst.BinaryOperation)
    assert flow.same_value(product.left, product.right)
    assert not flow.same_value(product.left, outer.right)


def test_tile_shapes_are_symbolic() -> None:
    flow = flow_of(samples.FLASH_EXP2)
    typing = Typing(flow)
    assert typing.shape(last(flow, "tl.dot(q, k)")) == ("BM", "BN")
    assert typing.shape(last(flow, "tl.max(s, 1)")) == ("BM",)
    assert typing.shape(last(flow, "l_i[:, None]")) == ("BM", "1")
    assert not conflicts(flow)


def test_operands_of_different_sizes_are_a_conflict() -> None:
    flow = body(
        "a = tl.arange(0, B)[:, None] + tl.arange(0, 2 * B)",
        "tl.store(y_ptr, a + tl.arange(0, 4)[:, None])",
    )
    typing = Typing(flow)
    assert typing.shape(last(flow, "a")) == ("B", "2*B")
    with pytest.raises(ShapeConflict):
        typing.shape(last(flow, "a + tl.arange(0, 4)[:, None]"))


@pytest.mark.parametrize(
    ("source", "exponentials", "rescaled"),
    [
        (samples.ONE_BLOCK_SOFTMAX, 1, []),
        (samples.LOG_SOFTMAX, 1, []),
        (samples.ROWS_SOFTMAX, 1, []),
        (samples.ONLINE_SOFTMAX, 2, ["d"]),
        (samples.FLASH_EXP, 1, ["l_i", "acc"]),
        (samples.FLASH_EXP2, 1, ["l_i", "acc"]),
        (samples.LAYER_NORM, 0, []),
    ],
)
def test_softmax_is_recognised_however_spelled(
    source: str, exponentials: int, rescaled: list[str]
) -> None:
    flow = flow_of(source)
    assert len(stabilised_exponentials(flow)) == exponentials
    found = rescales(flow)
    assert [flow.source(r.running) for r in found] == rescaled
    assert all(r.from_nothing for r in found)
