"""What launchers ask of the host: autotuning without a benchmark, a driver without a device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver

from gatecert.lanes.interpreter.failures import LaneRefusal
from gatecert.lanes.interpreter.launches import config_in_force, recorders

_PROPERTIES = {
    "multiprocessor_count": 4,
    "max_shared_mem": 232448,
    "max_num_regs": 65536,
    "warpSize": 32,
    "sm_clock_rate": 1,
    "mem_clock_rate": 1,
    "mem_bus_width": 1,
}
"""Few multiprocessors, so that persistent kernels loop over their tiles."""


def patch_host() -> None:
    """Replace the autotuner's run and the active driver."""
    Autotuner.run = run_autotuned
    driver.set_active(StandInDriver())


def run_autotuned(tuner: Any, *args: Any, **options: Any) -> Any:
    """Run with the configuration in force; when launches are recorded dry, with each."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    configs = list(tuner.prune_configs(options))
    if not any(recorder.dry for recorder in recorders()):
        configs = [configs[config_in_force() % len(configs)]]
    result = None
    for config in configs:
        tuner.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **options, **config.all_kwargs()})
        result = tuner.fn.run(*args, **options, **config.all_kwargs())
    tuner.nargs = None
    return result


class StandInDriver:
    """Answers what a launcher may ask on a machine without a GPU, and refuses the rest."""

    utils = SimpleNamespace(get_device_properties=lambda device: dict(_PROPERTIES))

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise LaneRefusal(f"the launcher asks the GPU driver for {name!r}; there is no GPU here")
