"""Claims about the schema: derived dims, index tensors, optional and written arguments."""

# ruff: noqa: F722, F821, UP037 (named dims are not types)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.binding import Misfit, SeenTensor, bind
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.cases import cases_for, make_case
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.domain import domain_cases
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.schema import Seed, Size, Tensor, operation, tensor


@operation(derived={"Hq": "G*H", "Cap": "P*Z"}, tiled="S", sizes={"G": (1, 4), "Z": (8,)})
def grouped(q: Tensor["B Hq S"], k: Tensor["B H Cap"]) -> Tensor["B Hq S"]:
    return q + 0 * k.sum()


@operation(seed=Seed(), count=Size("S+1"), outputs=["y", "extra"])
def many(
    x: Tensor["B N"],
    keep: Tensor.mask("B N"),
    bias: Tensor["N"] | None = None,
    scale: Tensor["B"] | None = None,
    seed: int = 0,
    count: int = 0,
) -> tuple[Tensor["B N"], tensor("B", when="bias") | None]:
    y = torch.where(keep != 0, x, 0.0)
    return (y, None) if bias is None else (y + bias, y.sum(1))


@operation()
def doubled(out: Tensor.out("B N"), x: Tensor["B N"]) -> Tensor["B N"]:
    assert out is None
    return 2 * x


def test_a_derived_dim_follows_from_drawn_ones_which_alone_are_in_a_case() -> None:
    assert grouped.dims == ("B", "G", "H", "S", "P", "Z")
    for case in cases_for(grouped, dtypes=("float32",)):
        q, k = make_inputs(grouped, case).args
        sizes = case.sizes
        assert q.shape == (sizes["B"], sizes["G"] * sizes["H"], sizes["S"])
        assert k.shape == (sizes["B"], sizes["H"], sizes["P"] * sizes["Z"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"derived": {"B": "N", "N": "B"}}, r"dim B is derived from itself \(B = N, N = B\)"),
        ({"derived": {"N": "2*M"}, "tiled": "N"}, "tiled names dim 'N', which is derived"),
        ({"derived": {"N": "2*M"}, "sizes": {"N": (2,)}}, "sizes names dim 'N', which is derived"),
        ({"derived": {"N": "M-1"}}, "derived dim N: 'M-1' is no dim"),
        ({"outputs": ["a", "b"]}, "2 names in outputs for 1 results"),
    ],
)
def test_a_dim_is_drawn_or_derived_and_never_both(options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):

        @operation(**options)
        def broken(x: Tensor["B N"]) -> Tensor["B N"]:
            return x


def test_an_optional_argument_is_there_and_not_there_in_every_dtype() -> None:
    cases = cases_for(many, dtypes=("float32", "float16"), strategy="certify")
    assert cases[0].absent == ()
    for dtype in ("float32", "float16"):
        seen = {case.absent for case in cases if case.dtype == dtype}
        assert seen == {(), ("bias",), ("scale",), ("bias", "scale")}
    quick = cases_for(many, dtypes=("float32",), strategy="quick")
    assert {"bias" in case.absent for case in quick} == {True, False}


def test_a_case_says_in_its_id_what_it_lacks() -> None:
    case = Case("many", (("B", 2), ("N", 3), ("S", 4)), "float32", absent=("bias", "scale"))
    assert "/normal~bias~scale/" in case.id
    assert parse_case(case.id) == case


def test_what_is_left_out_is_none_and_its_result_is_not_asked_for() -> None:
    for case in cases_for(many, dtypes=("float32",)):
        inputs = make_inputs(many, case)
        x, keep, bias, scale, _, count = inputs.args
        assert (bias is None) == ("bias" in case.absent)
        assert (scale is None) == ("scale" in case.absent)
        assert count == case.sizes["S"] + 1
        made = expect(many, case, inputs)
        assert [one.name for one in made.outputs] == (["y"] if bias is None else ["y", "extra"])
        y = torch.where(keep, x, 0.0)
        if bias is None:
            for returned in ((y,), (y, None), y):
                assert (
                    contract_violation(many, case, inputs, many.returned(inputs.args, returned))
                    is None
                )
            too_many = many.returned(inputs.args, (y, x[:, 0]))
            assert contract_violation(many, case, inputs, too_many) == "2 outputs instead of 1"
        else:
            lost = many.returned(inputs.args, (y, None))
            assert (
                contract_violation(many, case, inputs, lost) == "extra is a NoneType, not a tensor"
            )


def test_only_an_optional_argument_can_be_left_out() -> None:
    case = Case("many", (("B", 2), ("N", 3), ("S", 4)), "float32", scalars=(("seed", 1.0),))
    with pytest.raises(UsageError, match=r"argument x of many cannot be left out; .* bias, scale"):
        make_inputs(many, parse_case(case.id.replace("normal", "normal~x")))
    with pytest.raises(UsageError, match="many has tensors x, keep, bias, scale, not y"):
        make_inputs(many, parse_case(case.id.replace("normal", "normal~y")))


def test_launching_the_domain_also_leaves_out_what_may_be() -> None:
    absent = {case.absent for case in domain_cases(many, dtypes=("float16",))}
    assert absent == {(), ("bias",), ("scale",), ("bias", "scale")}


def test_a_seed_is_drawn_in_every_case_whatever_its_default() -> None:
    seeds = [dict(case.scalars)["seed"] for case in cases_for(many, dtypes=("float32",))]
    assert len(set(seeds)) > 2 * len(seeds) // 3 and 0.0 not in seeds


def test_a_destination_is_poisoned_lies_as_the_case_says_and_is_none_to_the_reference() -> None:
    assert [spec.name for spec in doubled.outputs] == ["out"]
    case = make_case(doubled, {"B": 3, "N": 5}, dtype="float16", layout="row_padded")
    inputs = make_inputs(doubled, case)
    out, x = inputs.args
    assert out.isnan().all() and out.dtype is torch.float16
    assert out.shape == x.shape and not out.is_contiguous()
    assert np.array_equal(expect(doubled, case, inputs).outputs[0].reference, 2 * x.double())


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (
            {"out": Tensor.out("N"), "return": Tensor["M"]},
            r"destination 'out' is \[N\], but .* \[M\]",
        ),
        ({"out": Tensor.out("N") | None, "return": Tensor["N"]}, "it cannot be left out"),
        ({"x": tensor("N", when="y"), "return": Tensor["N"]}, "`when` is for results"),
        ({"return": tensor("N", when="y")}, "is there when 'y' is, which is neither"),
        ({"return": Tensor["N"] | None}, "result 'output' may be None; say of which argument"),
        (
            {"t": Tensor.pages("B P", pages="9", block=4, lengths="x"), "return": Tensor["N"]},
            "argument 't' goes by 'x', which is no index tensor of its own; it may be none",
        ),
    ],
)
def test_a_role_that_does_not_fit_is_refused(annotations: Any, message: str) -> None:
    def reference(out=None, x=None, t=None): ...

    reference.__annotations__ = dict.fromkeys(("out", "x", "t"), Tensor["N"]) | annotations
    with pytest.raises(UsageError, match=message):
        operation()(reference)


def test_indices_that_are_written_out_must_lead_somewhere() -> None:
    text = "segment_sum/float32/T=3,N=1,S=2/contiguous/normal:segments={}/seed=0"
    found = make_inputs(get_operation("segment_sum"), parse_case(text.format("0,0,1")))
    assert found.args[1].tolist() == [0, 0, 1]
    for values, wrong in (("0,1,0", "must not fall, but 1 is followed by 0"), ("0,1,2", "hold 2")):
        with pytest.raises(
            UsageError, match=rf"argument segments \(segments \[T\] = \(3,\)\).*{wrong}"
        ):
            make_inputs(get_operation("segment_sum"), parse_case(text.format(values)))


def test_a_call_binds_to_sums_sizes_and_without_what_is_optional() -> None:
    varlen = get_operation("attention_varlen")
    packed = {"q": (70, 6, 40), "k": (70, 3, 40), "v": (70, 3, 40)}
    seen: dict[str, Any] = {
        name: SeenTensor(shape, (shape[1] * shape[2], shape[2], 1), "float16")
        for name, shape in packed.items()
    }
    seen["offsets"] = SeenTensor((5,), (1,), "int32")
    bound = bind(varlen, seen)
    assert bound.dims == {"T": 70, "G": 2, "H": 3, "D": 40, "B": 4}
    rows = SeenTensor((3, 5), (5, 1), "float32")
    mask = SeenTensor((3, 5), (5, 1), "bool")
    assert bind(get_operation("masked_softmax"), {"x": rows, "mask": mask}).dims == {"B": 3, "N": 5}
    segments = {"x": rows, "segments": SeenTensor((3,), (1,), "int64"), "count": 9}
    assert bind(get_operation("segment_sum"), segments).dims == {"T": 3, "N": 5, "S": 9}
    with pytest.raises(Misfit, match=r"argument q: expected shape \[T, G\*H, D\] = .* has \(70, 7"):
        wrong = SeenTensor((70, 7, 40), (280, 40, 1), "float16")
        bind(varlen, {"k": seen["k"], "v": seen["v"], "offsets": seen["offsets"], "q": wrong})
