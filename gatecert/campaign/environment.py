"""What a run depended on, written down."""

from __future__ import annotations

import importlib.metadata
import platform

import gatecert
from gatecert.campaign.records import Environment
from gatecert.operators.registry import catalogue_version


def describe_environment(
    labels_sha256: str, lane: str = "interpreter", gpu: str = ""
) -> Environment:
    """Versions and platform; no host or user name. `gpu` is the one that a gate uses."""
    version = importlib.metadata.version
    return Environment(
        gatecert=gatecert.__version__,
        python=platform.python_version(),
        torch=version("torch"),
        triton=version("triton"),
        numpy=version("numpy"),
        platform=f"{platform.system()} {platform.machine()}",
        lane=lane,
        operators=catalogue_version(),
        labels_sha256=labels_sha256,
        gpu=gpu,
    )
