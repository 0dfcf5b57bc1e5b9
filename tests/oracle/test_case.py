from __future__ import annotations

import pytest

from gatecert.errors import UsageError
from gatecert.oracle.case import Case, parse_case

WHOLE = Case(
    operation="leaky_relu",
    dims=(("B", 3), ("N", 129)),
    dtype="float16",
    layout="row_padded",
    recipe="all_negative",
    scalars=(("slope", 1e-05), ("other", -0.75)),
    seed=12,
)


def test_an_id_reads_as_its_description() -> None:
    assert WHOLE.id == (
        "leaky_relu/float16/B=3,N=129/row_padded/all_negative/slope=1e-05,other=-0.75/seed=12"
    )


@pytest.mark.parametrize(
    "case",
    [
        WHOLE,
        Case("softmax", (("B", 1), ("N", 0)), "bfloat16"),
        Case("swiglu", (("B", 2), ("N", 3)), "float32", layout="row_padded:b"),
        Case("rope", (("S", 2),), "float32", layout="inner_transposed:x+cos"),
    ],
)
def test_a_case_survives_the_way_through_its_id(case: Case) -> None:
    assert parse_case(case.id) == case


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("softmax", "operation/dtype"),
        ("softmax/float61/B=1/contiguous/normal/seed=0", "did you mean 'float16'"),
        ("softmax/float16/B=1/row_paded/normal/seed=0", "did you mean 'row_padded'"),
        ("softmax/float16/B=1/row_paded:x/normal/seed=0", "did you mean 'row_padded'"),
        ("softmax/float16/B=1/row_padded:/normal/seed=0", "not of the form layout:name+name"),
        ("softmax/float16/B=1/row_padded:x++y/normal/seed=0", "not of the form layout:name+name"),
        ("softmax/float16/B=1/contiguous/norml/seed=0", "did you mean 'normal'"),
        ("softmax/float16/B=-1/contiguous/normal/seed=0", "B=-1 is not a whole number"),
        ("softmax/float16/B/contiguous/normal/seed=0", "'B' is not of the form name=value"),
        ("softmax/float16/B=1/contiguous/normal/slope=x/seed=0", "slope=x is not a number"),
        ("softmax/float16/B=1/contiguous/normal/sed=0", "must be seed=n"),
    ],
)
def test_a_wrong_id_is_an_error_that_says_what_is_wrong(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_case(text)
    assert hint in str(caught.value)
