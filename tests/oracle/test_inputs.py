from __future__ import annotations

import numpy as np
import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import parse_case
from gatecert.oracle.formats import FORMATS
from gatecert.oracle.inputs import changed_inputs, fresh_copy, make_inputs
from gatecert.oracle.layouts import LAYOUTS
from gatecert.oracle.operations import get_operation
from gatecert.oracle.values import RECIPES

SOFTMAX = get_operation("softmax")
HASHES = {
    "softmax": "f1d88fc63b120667ba9b5b891ba62da6867d8df250f90b44439766c5daa3e876",
    "cross_entropy": "7da5eb35d0e449397230af5de14ef7e68a2808149627a72eaf0b79c2ac8a87b7",
}


def softmax_inputs(layout: str = "contiguous", recipe: str = "normal", dtype: str = "float16"):
    return make_inputs(SOFTMAX, parse_case(f"softmax/{dtype}/B=4,N=9/{layout}/{recipe}/seed=3"))


def test_inputs_are_the_same_on_every_machine() -> None:
    # Hashes written down once: another value means that stored cases no longer replay.
    assert softmax_inputs().sha256 == HASHES["softmax"]
    target = "cross_entropy/bfloat16/B=4,V=9/contiguous/log_uniform/seed=1"
    assert (
        make_inputs(get_operation("cross_entropy"), parse_case(target)).sha256
        == (HASHES["cross_entropy"])
    )


def test_making_inputs_leaves_torch_and_numpy_generators_alone() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    before = torch.rand(1), np.random.rand()
    torch.manual_seed(0)
    np.random.seed(0)
    softmax_inputs()
    assert (torch.rand(1), np.random.rand()) == before


def test_another_seed_gives_other_values() -> None:
    other = parse_case("softmax/float16/B=4,N=9/contiguous/normal/seed=4")
    assert make_inputs(SOFTMAX, other).sha256 != softmax_inputs().sha256


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_gives_its_strides_and_no_slack(layout: str) -> None:
    (x,) = softmax_inputs(layout).args
    strides = {
        "contiguous": (9, 1),
        "transposed": (1, 4),
        "sliced": (14, 1),
        "row_padded": (16, 1),
        "offset_base": (9, 1),
        "expanded": (0, 1),
        "inner_transposed": (1, 4),
        "spread": (9 * 2203, 2203),
        "far_rows": (33013, 1),
        "far_span": (2**30 + 2203, 1),
        "strided_vectors": (9, 1),
    }
    offsets = {"sliced": 17, "offset_base": 3}
    assert x.shape == (4, 9)
    assert x.stride() == strides[layout]
    assert x.storage_offset() == offsets.get(layout, 0)
    last = x.storage_offset() + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    assert x.untyped_storage().nbytes() == (last + 1) * x.element_size()


@pytest.mark.parametrize(
    ("layout", "shape", "strides"),
    [
        ("transposed", (2, 3, 5), (5, 10, 1)),
        ("inner_transposed", (2, 3, 5), (15, 1, 3)),
        ("inner_transposed", (2, 3, 5, 7), (105, 35, 1, 5)),
        ("spread", (5,), (1,)),
        ("strided_vectors", (5,), (3,)),
        ("strided_vectors", (2, 3, 5), (15, 5, 1)),
    ],
)
def test_layouts_of_other_ranks(
    layout: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    assert LAYOUTS[layout](shape).strides == strides


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"far_span"}))
def test_memory_between_elements_is_poison(layout: str) -> None:
    (x,) = softmax_inputs(layout).args
    span = x.untyped_storage().nbytes() // x.element_size()
    memory = x.as_strided((span,), (1,), 0)
    held = 9 if layout == "expanded" else 36
    assert int(torch.isnan(memory).sum()) == span - held
    assert not torch.isnan(x).any()


def test_heads_and_sequence_change_places_in_a_transposed_tensor() -> None:
    case = parse_case("attention_causal/float32/B=2,H=3,S=5,D=16/transposed/normal/seed=0")
    q = make_inputs(get_operation("attention_causal"), case).args[0]
    assert q.stride() == (240, 16, 48, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fresh_copy_has_the_same_bits_in_other_memory(layout: str) -> None:
    inputs = softmax_inputs(layout, "nonfinite")
    copy = fresh_copy(inputs)
    assert changed_inputs(inputs, copy) == []
    assert copy.args[0].stride() == inputs.args[0].stride()
    assert copy.args[0].data_ptr() != inputs.args[0].data_ptr()


def test_a_changed_element_is_named_unless_it_may_change() -> None:
    inputs = softmax_inputs("row_padded")
    after = fresh_copy(inputs)
    after.args[0][1, 2] = 0.0
    assert changed_inputs(inputs, after) == ["x"]
    assert changed_inputs(inputs, after, allowed=("x",)) == []


def test_a_write_between_rows_is_seen_even_where_the_argument_is_in_place() -> None:
    inputs = softmax_inputs("row_padded")
    after = fresh_copy(inputs)
    after.args[0].as_strided((1,), (1,), 9).fill_(0.0)
    assert changed_inputs(inputs, after, allowed=("x",)) == ["x (outside its elements)"]


def test_a_nan_that_becomes_another_nan_or_a_zero_that_changes_sign_is_a_change() -> None:
    inputs = softmax_inputs("contiguous", "one_hot")
    after = fresh_copy(inputs)
    after.args[0].copy_(torch.where(after.args[0] == 0, -0.0, after.args[0]))
    assert torch.equal(after.args[0], inputs.args[0])
    assert changed_inputs(inputs, after) == ["x"]


def test_a_tensor_that_was_resized_is_a_change() -> None:
    inputs = softmax_inputs()
    after = fresh_copy(inputs)
    after.args[0].resize_(2, 2)
    assert changed_inputs(inputs, after, allowed=("x",)) == ["x (shape or strides)"]


def targets(case: str) -> torch.Tensor:
    made: torch.Tensor = make_inputs(get_operation("cross_entropy"), parse_case(case)).args[1]
    return made


def test_integers_stay_in_range_and_some_are_the_marker() -> None:
    target = targets("cross_entropy/float32/B=64,V=9/contiguous/normal/seed=0")
    marked = target == -100
    assert marked.any() and not marked.all()
    assert target.dtype == torch.int64
    assert set(target[~marked].tolist()) == set(range(9))


def test_the_first_row_is_ignored_in_about_half_of_the_cases_and_never_the_only_one() -> None:
    made = [
        targets(f"cross_entropy/float32/B={rows},V=9/contiguous/normal/seed={seed}")
        for rows in (1, 2, 5)
        for seed in range(20)
    ]
    first = [bool(target[0] == -100) for target in made]
    assert not any(first[:20])
    assert 10 < sum(first[20:]) < 30
    assert all((target != -100).any() for target in made)


def test_all_rows_are_ignored_in_one_recipe_alone() -> None:
    for recipe in get_operation("cross_entropy").recipes:
        target = targets(f"cross_entropy/float32/B=5,V=9/contiguous/{recipe}/seed=0")
        assert bool((target == -100).all()) == (recipe == "ties")


def test_no_target_points_at_a_masked_class() -> None:
    case = parse_case("cross_entropy/float32/B=9,V=70/contiguous/masked_rows/seed=0")
    logits, target = make_inputs(get_operation("cross_entropy"), case).args
    counted = target != -100
    assert counted.any()
    assert torch.isfinite(logits[counted, target[counted]]).all()


def test_a_layout_of_named_arguments_leaves_the_others_contiguous() -> None:
    case = parse_case("swiglu/float32/B=4,N=9/transposed:b/normal/seed=0")
    a, b = make_inputs(get_operation("swiglu"), case).args
    assert (a.stride(), b.stride()) == ((9, 1), (1, 4))
    case = parse_case("swiglu/float32/B=4,N=9/expanded:a/normal/seed=0")
    a, b = make_inputs(get_operation("swiglu"), case).args
    assert (a.stride(), b.stride()) == ((0, 1), (9, 1))
    assert not torch.equal(b[0], b[1])


def test_a_layout_of_an_argument_that_the_operation_lacks_is_refused() -> None:
    case = parse_case("swiglu/float32/B=4,N=9/transposed:c/normal/seed=0")
    with pytest.raises(UsageError, match="swiglu has tensors a, b, not c"):
        make_inputs(get_operation("swiglu"), case)


@pytest.mark.parametrize("dtype", FORMATS)
def test_subnormal_inputs_are_not_flushed_and_special_ones_stay(dtype: str) -> None:
    # A published generator flushes subnormals to 0, and turns NaN into Inf.
    (x,) = softmax_inputs(recipe="subnormal", dtype=dtype).args
    assert ((x != 0) & (x.double().abs() < FORMATS[dtype].smallest_normal)).all()
    (x,) = softmax_inputs(recipe="nonfinite", dtype=dtype).args
    assert torch.isnan(x[0, -1])
    assert x[2, -1] == float("inf")


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if recipe.finite])
def test_finite_recipes_stay_finite_in_every_dtype(recipe: str, dtype: str) -> None:
    (x,) = softmax_inputs(recipe=recipe, dtype=dtype).args
    assert torch.isfinite(x).all()


def test_a_case_of_another_operation_or_without_a_dim_is_refused() -> None:
    with pytest.raises(UsageError, match="not one of operation 'softmax'"):
        make_inputs(SOFTMAX, parse_case("gelu_erf/float16/B=1,N=1/contiguous/normal/seed=0"))
    with pytest.raises(UsageError, match="softmax has dims B, N, not B"):
        make_inputs(SOFTMAX, parse_case("softmax/float16/B=1/contiguous/normal/seed=0"))
    with pytest.raises(UsageError, match="leaky_relu has scalars slope, not none"):
        make_inputs(
            get_operation("leaky_relu"),
            parse_case("leaky_relu/float16/B=1,N=1/contiguous/normal/seed=0"),
        )


def test_a_dim_of_size_zero_gives_empty_tensors() -> None:
    case = parse_case("softmax/float32/B=0,N=5/row_padded/normal/seed=0")
    inputs = make_inputs(SOFTMAX, case)
    assert inputs.args[0].shape == (0, 5)
    assert changed_inputs(inputs, fresh_copy(inputs)) == []
