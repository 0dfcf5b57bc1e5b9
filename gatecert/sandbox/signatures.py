"""The compiled form behind a launch."""

from __future__ import annotations

from gatecert.lanes.records import Launch
from gatecert.mutants.records import Signature


def signature_of(launch: Launch) -> Signature:
    """The general form: no divisibility, no value folded."""
    return Signature(
        kernel=launch.kernel,
        types=launch.types,
        constexprs=launch.constexprs,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )
