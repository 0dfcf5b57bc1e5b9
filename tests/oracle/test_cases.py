from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators import judge
from gatecert.oracle.domain import domain_cases
from gatecert.oracle.expectation import expect
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.layouts import LAYOUTS
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Operation
from gatecert.oracle.shapes import next_prime, sizes_for
from gatecert.oracle.strategies import STRATEGIES
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.oracle.values import RECIPES

DTYPES = ("float32", "float16", "bfloat16")
EVERY = pytest.mark.parametrize("operation", operations(), ids=lambda found: found.name)


def test_sizes_surround_the_block() -> None:
    sizes = sizes_for((64,))
    assert {1, 2, 63, 64, 65, 129, 192, 97} <= set(sizes)
    assert any(size < 32 for size in sizes if size > 2)
    assert sizes_for((16, 64))[-1] == 192
    assert sizes_for((64,), limits=(40, 16)) == (16, 40)
    assert [next_prime(n) for n in (0, 2, 8, 96, 97)] == [2, 2, 11, 97, 97]


@EVERY
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_case_is_valid_unique_and_replays_from_its_id(
    operation: Operation, strategy: str
) -> None:
    cases = cases_for(operation, dtypes=DTYPES, layouts=tuple(LAYOUTS), strategy=strategy)
    assert len(set(cases)) == len(cases)
    for case in cases:
        assert parse_case(case.id) == case
    if STRATEGIES[strategy].exact and operation.exact is None:
        assert not cases
    elif cases:
        assert {case.dtype for case in cases[:3]} == set(STRATEGIES[strategy].of(DTYPES))
    else:
        assert strategy == "nan_injected" and "nan_injected" not in operation.recipes


@EVERY
def test_certify_uses_every_recipe_of_the_domain_and_every_layout_in_every_dtype(
    operation: Operation,
) -> None:
    layouts = ("contiguous", "row_padded", "transposed")
    for dtype in DTYPES:
        cases = [
            case
            for case in cases_for(operation, dtypes=DTYPES, layouts=layouts)
            if case.dtype == dtype
        ]
        # Strategies of their own: a certified run has NaN and infinities by `nonfinite`.
        own = {"adversarial", "nan_injected"}
        narrow = {name for name, recipe in RECIPES.items() if recipe.narrow}  # in one dtype
        recipes = set(operation.recipes) - own - narrow
        assert {case.recipe for case in cases} - narrow == recipes
        assert set(layouts) <= {case.layout for case in cases}
        assert 12 <= len(cases) <= 24


@EVERY
def test_quick_is_four_cases_per_dtype_and_certify_starts_with_them(operation: Operation) -> None:
    quick = cases_for(operation, dtypes=("float32",), strategy="quick")
    assert len(quick) == 4
    first = quick[0]
    assert first.recipe == "normal"
    for dim in set(operation.tiled) - set(operation.sizes):
        assert first.sizes[dim] > 64
        assert first.sizes[dim] % 32


@EVERY
def test_certify_keeps_batches_and_programs_few_but_for_one_case_per_dim(
    operation: Operation,
) -> None:
    every = cases_for(operation, dtypes=DTYPES, blocks=dict.fromkeys(operation.tiled, (16,)))
    cases = [case for case in every if not RECIPES[case.recipe].narrow]
    open_dims = [dim for dim in operation.dims if dim not in operation.sizes]
    for case in cases[: -len(open_dims) - _has_far_case(operation)]:
        batch = [n for dim, n in case.dims if dim not in (*operation.tiled, *operation.sizes)]
        assert math.prod(batch) <= 6
        assert max(n for dim, n in case.dims if dim in operation.tiled) <= 64


@EVERY
def test_certify_has_one_long_case_per_tiled_dim_and_one_wide_case_per_batch_dim(
    operation: Operation,
) -> None:
    cases = cases_for(operation, dtypes=DTYPES)
    for dim in operation.dims:
        if dim in operation.sizes:
            continue
        kept = any(dim in output.named_dims for output in operation.outputs)
        long = 257 if operation.contraction and kept else 1025
        size = long if dim in operation.tiled else 33
        costly = cases[-len(operation.dims) - 1 :]
        case = next(case for case in costly if case.sizes[dim] == size)
        assert all(n <= 3 for other, n in case.dims if other not in (dim, *operation.sizes))


def test_costly_cases_take_turns_with_the_dtypes_and_the_smallest_head() -> None:
    *costly, far, peaked = cases_for(get_operation("attention"), dtypes=DTYPES)[-6:]
    assert [case.dtype for case in costly] == [*DTYPES, DTYPES[0]]
    assert (far.dtype, peaked.dtype) == ("float16", "bfloat16")
    assert {case.sizes["D"] for case in (*costly, peaked)} == {16}
    assert far.sizes == {"B": 2, "H": 2, "S": 129, "D": 64, "T": 257}


def test_what_is_tall_when_it_is_transposed_reaches_far_by_its_columns() -> None:
    layouts = ("contiguous", "transposed")
    *_, wide, tall = cases_for(get_operation("softmax"), dtypes=DTYPES, layouts=layouts)
    assert (wide.sizes, tall.sizes) == ({"B": 33, "N": 1025}, {"B": 513, "N": 65})
    assert tall.layout == "transposed"
    (x,) = make_inputs(get_operation("softmax"), tall).args
    assert 64 * x.stride(1) >= 2**15


def test_an_operation_without_the_usual_recipes_has_its_costly_cases_with_its_own() -> None:
    softmax = replace(get_operation("softmax"), recipes=("ties",))
    *_, long, wide, far = cases_for(softmax, dtypes=DTYPES)
    assert (long.recipe, long.sizes["N"]) == ("ties", 1025)
    assert (wide.recipe, wide.sizes["B"]) == ("ties", 33)
    assert (far.recipe, far.sizes) == ("ties", {"B": 33, "N": 1025})


def _last_of_any_dtype(operation: Operation, dtypes: Sequence[str]) -> Case:
    cases = cases_for(operation, dtypes=dtypes)
    return [case for case in cases if not RECIPES[case.recipe].narrow][-1]


def _has_far_case(operation: Operation) -> bool:
    """Whether a case is wide and long: everywhere but where no tiled dim can be long."""
    last = _last_of_any_dtype(operation, DTYPES).sizes
    far = any(size > 256 for size in last.values())
    assert far or set(operation.tiled) <= set(operation.sizes)
    return far


@EVERY
def test_offsets_leave_16_bits_somewhere(operation: Operation) -> None:
    """Flat ones in the far case; when spread every strided one, but in a small window."""
    cases = cases_for(operation, dtypes=("float32",), layouts=("contiguous", "spread"))
    *_, spread = (case for case in cases if case.layout == "spread")
    indices = {spec.name for spec in operation.tensors if spec.index is not None}
    for name, tensor in make_inputs(operation, spread).tensors.items():
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
            exempt = tensor.ndim < 2 or size in (1, 3, 4) or name in indices
            assert exempt or (size - 1) * stride >= 2**15
    if _has_far_case(operation):
        sizes = _last_of_any_dtype(operation, ("float32",)).sizes
        specs = (*operation.tensors, *operation.outputs)
        assert max(math.prod(spec.shape(sizes)) for spec in specs) > 2**15


@EVERY
def test_spread_tensors_are_small_and_take_no_part_in_the_rotation(operation: Operation) -> None:
    cases = cases_for(operation, dtypes=DTYPES, layouts=("transposed", "spread"))
    spread = [case for case in cases if case.layout == "spread"]
    assert len(spread) == 1 + ("spike" in operation.recipes)
    for tensor in (t for case in spread for t in make_inputs(operation, case).tensors.values()):
        assert tensor.untyped_storage().nbytes() < 64 << 20


def test_each_tiled_dim_has_a_tail_apart_from_the_others() -> None:
    cases = cases_for(
        get_operation("matmul"),
        dtypes=("float32",),
        blocks={"M": (16,), "N": (32,), "K": (8,)},
    )
    blocks = {"M": 16, "N": 32, "K": 8}
    tails = {tuple(dim for dim in "MNK" if case.sizes[dim] % blocks[dim]) for case in cases}
    assert {("M",), ("N",), ("K",), ("M", "N", "K"), ()} <= tails


def test_the_first_case_has_dims_that_all_differ() -> None:
    for operation in operations():
        (first, *_) = cases_for(operation, dtypes=("float32",))
        repeats = Counter(size for dim, size in first.dims if dim in operation.tiled)
        assert max(repeats.values()) == 1, first.id


def test_a_teams_sizes_are_added_and_replace_the_choice_of_head_sizes() -> None:
    attention = get_operation("attention")
    cases = cases_for(attention, dtypes=("float32",), extra_dims={"D": (128,), "S": (300,)})
    assert {case.sizes["D"] for case in cases} == {128}
    assert any(case.sizes["S"] == 300 for case in cases)
    assert 40 in {case.sizes["D"] for case in cases_for(attention, dtypes=("float32",))}


def test_the_same_seed_gives_the_same_cases_and_another_seed_other_inputs() -> None:
    operation = get_operation("leaky_relu")
    again = [cases_for(operation, dtypes=DTYPES, seed=7) for _ in range(2)]
    assert again[0] == again[1]
    assert not set(again[0]) & set(cases_for(operation, dtypes=DTYPES, seed=8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "certfy"}, "did you mean 'certify'"),
        ({"layouts": ("padded",)}, "unknown layout 'padded'"),
        ({"dtypes": ("float8",)}, "unknown dtype 'float8'"),
        ({"blocks": {"K": (1,)}}, "has no dim 'K'; it has B, N"),
        ({"extra_dims": {"Q": (1,)}}, "has no dim 'Q'; it has B, N"),
    ],
)
def test_wrong_options_are_errors_that_name_the_right_ones(options, message) -> None:
    with pytest.raises(UsageError, match=message):
        cases_for(get_operation("softmax"), **{"dtypes": DTYPES, **options})


def test_the_domain_sweep_starts_with_a_small_case_per_dtype_and_covers_powers_of_two() -> None:
    cases = domain_cases(get_operation("matmul"), dtypes=DTYPES, extra_dims={"K": (5000,)})
    for dtype in DTYPES:
        own = [case for case in cases if case.dtype == dtype]
        assert max(own[0].sizes.values()) <= 33
        for dim in "MNK":
            assert {1, 2, 3, 1024, 1025, 4096} <= {case.sizes[dim] for case in own}
        assert 5000 in {case.sizes["K"] for case in own}


# Bugs in plain torch, each as a kernel would compute it, and the tile that it works in.
TILE = 32


def online(x: torch.Tensor, *, start: float = -float("inf"), rescale: bool = True) -> torch.Tensor:
    """Softmax with a running maximum over tiles."""
    high = torch.full((x.shape[0], 1), start)
    total = torch.zeros(x.shape[0], 1)
    for tile in x.split(TILE, dim=1):
        new = torch.maximum(high, tile.amax(dim=1, keepdim=True))
        shift = torch.where(new.isneginf(), 0.0, new)
        factor = torch.exp(high - shift) if rescale else 1.0
        total = total * factor + torch.exp(tile - shift).sum(dim=1, keepdim=True)
        high = new
    return torch.exp(x - high) / total


def padded_with_zero(x: torch.Tensor) -> torch.Tensor:
    padding = -x.shape[1] % TILE
    wide = torch.nn.functional.pad(x, (0, padding))
    return torch.softmax(wide, dim=1)[:, : x.shape[1]]


SOFTMAX_BUGS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tail padded with 0": padded_with_zero,
    "running maximum starts at 0": lambda x: online(x, start=0.0),
    "no rescale": lambda x: online(x, rescale=False),
    "maximum of the first tile": lambda x: _normalised(x, x[:, :TILE].amax(1, keepdim=True)),
    "no maximum": lambda x: _normalised(x, torch.zeros(())),
    "last element dropped": lambda x: _normalised(x, x.amax(1, keepdim=True), x[:, :-1]),
    "last tile overwrites": lambda x: _normalised(x, x.amax(1, keepdim=True), x.split(TILE, 1)[-1]),
}


def _normalised(
    x: torch.Tensor, high: torch.Tensor, summed: torch.Tensor | None = None
) -> torch.Tensor:
    parts = x if summed is None else summed
    return torch.exp(x - high) / torch.exp(parts - high).sum(dim=1, keepdim=True)


def rejected(
    operation: Operation, cases: tuple[Case, ...], kernel: Callable[..., torch.Tensor]
) -> int:
    count = 0
    for case in cases:
        inputs = make_inputs(operation, case)
        made = expect(operation, case, inputs).outputs[0]
        args = [arg.float() if isinstance(arg, torch.Tensor) else arg for arg in inputs.args]
        result = kernel(*args).to(torch_dtype(case.dtype))
        count += not judge(RoundingInterval(), made, result).passed
    return count


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bug", SOFTMAX_BUGS)
def test_certify_rejects_the_classic_softmax_bugs_in_every_dtype(bug: str, dtype: str) -> None:
    softmax = get_operation("softmax")
    cases = cases_for(softmax, dtypes=(dtype,), blocks={"N": (TILE,)})
    assert rejected(softmax, cases, SOFTMAX_BUGS[bug]) > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_certify_accepts_a_correct_online_softmax(dtype: str) -> None:
    softmax = get_operation("softmax")
    cases = cases_for(softmax, dtypes=(dtype,), blocks={"N": (TILE,)})
    assert rejected(softmax, cases, online) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_certify_rejects_attention_without_its_scale_and_layer_norm_without_its_epsilon(
    dtype: str,
) -> None:
    attention, layer_norm = get_operation("attention"), get_operation("layer_norm")

    def unscaled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.mT, -1) @ v

    def without_epsilon(x, weight, bias, eps):
        deviation = x - x.mean(1, keepdim=True)
        return deviation / deviation.square().mean(1, keepdim=True).sqrt() * weight + bias

    assert rejected(attention, cases_for(attention, dtypes=(dtype,)), unscaled) > 5
    assert rejected(layer_norm, cases_for(layer_norm, dtypes=(dtype,)), without_epsilon) > 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_certify_rejects_a_clamp_far_above_ordinary_values(dtype: str) -> None:
    leaky_relu = get_operation("leaky_relu")

    def clamped(x: torch.Tensor, slope: float) -> torch.Tensor:
        y = torch.where(x > 0, x, slope * x)
        return torch.where(y.isfinite(), y.clamp(max=200.0), y)

    assert rejected(leaky_relu, cases_for(leaky_relu, dtypes=(dtype,)), clamped) == 1
