"""Launches are recorded as asked for; a dry run executes nothing."""

from __future__ import annotations

import contextvars
import linecache
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import torch
import triton
import triton.language as tl

from gatecert.lanes import interpreter
from gatecert.lanes.records import FindingKind, GuardPolicy, Launch
from tests.gatecert.lanes.inside import inside_lane


@triton.jit
def identity(x):
    return x


@triton.jit
def recorded_kernel(
    out,
    x,
    bias,
    count,
    big,
    eps,
    flag,
    FUNCTION: tl.constexpr,
    TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, FUNCTION(tl.load(x + lanes)).to(TYPE))


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 8}, num_warps=2, num_stages=1),
        triton.Config({"BLOCK": 16}, num_warps=8),
        triton.Config({"BLOCK": 32}),
    ],
    key=["count"],
    prune_configs_by={"early_config_prune": lambda configs, named, **rest: configs[:2]},
)
@triton.heuristics({"EVEN": lambda arguments: arguments["count"] % arguments["BLOCK"] == 0})
@triton.jit
def tuned_kernel(out, count, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + lanes, BLOCK + EVEN, mask=lanes < count)


@triton.jit
def fill_kernel(out, value: tl.float64, count: tl.int64):
    tl.store(out, value)


def launch_tuned(count: int) -> torch.Tensor:
    out = torch.zeros(count, dtype=torch.int32)
    tuned_kernel[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](out, count)
    return out


@inside_lane
def test_a_record_says_what_the_launcher_asked_for() -> None:
    x = torch.ones(8, dtype=torch.bfloat16)
    out = torch.zeros(8, dtype=torch.float16)
    with interpreter.recording() as launches:
        recorded_kernel[(2, 3)](
            out, x, None, 1, 2**40, 1e-5, True, identity, tl.float16, BLOCK=8, num_warps=8
        )
    file, line = launches[0].launcher
    assert file == __file__
    assert "recorded_kernel[(2, 3)]" in linecache.getline(file, line)
    assert [msgspec.structs.replace(launch, launcher=("", 0)) for launch in launches] == [
        Launch(
            kernel=f"{__name__}:recorded_kernel",
            grid=(2, 3, 1),
            types=(
                ("out", "*fp16"),
                ("x", "*bf16"),
                ("count", "i32"),
                ("big", "i64"),
                ("eps", "fp32"),
                ("flag", "u1"),
            ),
            constexprs=(
                ("bias", None),
                ("FUNCTION", f"fn:{__name__}:identity"),
                ("TYPE", "dtype:fp16"),
                ("BLOCK", 8),
            ),
            integers=(("count", 1), ("big", 2**40)),
            num_warps=8,
            num_stages=3,
        )
    ]
    assert out.equal(x.half())


@inside_lane
def test_an_annotated_type_wins_over_the_value_s() -> None:
    out = torch.zeros(1, dtype=torch.float64)
    with interpreter.recording() as launches:
        fill_kernel[(1,)](out, 0.1, 5)
    assert dict(launches[0].types) == {"out": "*fp64", "value": "fp64", "count": "i64"}
    assert out.item() == 0.1


@inside_lane
def test_a_dry_run_records_and_changes_nothing() -> None:
    out = torch.zeros(8)
    with interpreter.dry_run() as launches:
        fill_kernel[(1,)](out, 1.0, 8)
    assert len(launches) == 1
    assert out.eq(0).all()


@inside_lane
def test_recorders_nest_and_end() -> None:
    out = torch.zeros(1)
    with interpreter.recording() as outer:
        fill_kernel[(1,)](out, 1.0, 1)
        with interpreter.recording() as inner:
            fill_kernel[(1,)](out, 1.0, 1)
    fill_kernel[(1,)](out, 1.0, 1)
    assert (len(outer), len(inner)) == (2, 1)


@inside_lane
def test_an_autotuned_kernel_runs_once_with_its_first_configuration() -> None:
    with interpreter.recording() as launches:
        out = launch_tuned(24)
    assert out.eq(8 + 1).all()
    (launch,) = launches
    assert dict(launch.constexprs) == {"EVEN": True, "BLOCK": 8}
    assert (launch.grid, launch.num_warps, launch.num_stages) == ((3, 1, 1), 2, 1)


@pytest.mark.parametrize(("index", "block"), [(0, 8), (1, 16), (2, 8), (3, 16)])
@inside_lane
def test_another_configuration_can_be_forced(index: int, block: int) -> None:
    with interpreter.tuned(index):
        out = launch_tuned(24)
    assert out.eq(block + (24 % block == 0)).all()


@inside_lane
def test_a_dry_run_records_every_configuration_left_after_pruning() -> None:
    with interpreter.dry_run() as launches:
        out = launch_tuned(24)
    assert [dict(launch.constexprs)["BLOCK"] for launch in launches] == [8, 16]
    assert out.eq(0).all()


@inside_lane
def test_a_missing_argument_is_the_launcher_s_error() -> None:
    with pytest.raises(TypeError, match="'count' is missing") as caught:
        fill_kernel[(1,)](torch.zeros(1), 1.0)
    assert not interpreter.is_interpreter_failure(caught.value)


@inside_lane
def test_kernels_are_told_from_other_functions() -> None:
    assert interpreter.is_kernel(fill_kernel)
    assert interpreter.is_kernel(tuned_kernel)
    assert not interpreter.is_kernel(launch_tuned)


@inside_lane
def test_a_launcher_may_ask_for_device_properties_and_no_more() -> None:
    active = triton.runtime.driver.active
    assert active.utils.get_device_properties(0)["multiprocessor_count"] > 0
    assert active.get_active_torch_device() == torch.device("cpu")
    with pytest.raises(interpreter.LaneRefusal, match="get_benchmarker"):
        active.get_benchmarker()


@triton.jit
def doubled_kernel(y, x, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + lanes, tl.load(x + lanes) * 2.0)


def doubled(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    doubled_kernel[(x.numel() // 8,)](y, x, BLOCK=8)
    return y


@inside_lane
def test_launches_of_several_threads_do_not_meet() -> None:
    inputs = [torch.arange(8.0 * programs) for programs in (1, 8, 19) * 8]
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(doubled, inputs))
    assert all(torch.equal(y, x * 2.0) for x, y in zip(inputs, outputs, strict=True))


@inside_lane
def test_launches_in_a_fresh_context_or_a_thread_are_recorded_guarded_and_timed() -> None:
    short = torch.zeros(15)[:12]  # two blocks of eight do not fit
    with (
        interpreter.guarded(GuardPolicy.LENIENT) as log,
        interpreter.timed() as watch,
        interpreter.recording() as launches,
    ):
        contextvars.Context().run(doubled, torch.zeros(8))
        after_context = watch.seconds
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: doubled_kernel[(2,)](short, short, BLOCK=8)).result()
    doubled(torch.zeros(8))
    assert [launch.grid for launch in launches] == [(1, 1, 1), (2, 1, 1)]
    assert 0 < after_context < watch.seconds
    assert FindingKind.STORE_OUT_OF_BOUNDS in {finding.kind for finding in log.findings()}


@inside_lane
def test_an_observer_sees_any_context_of_its_own_thread_and_no_other_thread() -> None:
    seen = []

    class Observer:
        def before(self, launch: Launch, tensors: object) -> None:
            seen.append(launch.grid[0])

        def after(self, launch: Launch, tensors: object, trace: object) -> None:
            pass

    with interpreter.observed(Observer()), ThreadPoolExecutor(1) as pool:
        contextvars.Context().run(doubled, torch.zeros(8))
        pool.submit(doubled, torch.zeros(16)).result()
    assert seen == [1]
