"""Prove on this machine that the corrected interpreter agrees with the stock one.

In float32, where the stock interpreter is right, both must give the same bits; in bf16, where
it is not, the corrected one must agree with torch. Each runs in a process of its own:
`python -m gatecert.lanes.interpreter.selftest stock` (or `corrected`) prints what it computed.
"""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

_SIDES = ("stock", "corrected")
_TIME_LIMIT_S = 300.0


class _Computed(msgspec.Struct, frozen=True):
    """Bits of float32 results by kernel, and the largest bf16 error in units of 2^-8."""

    bits: dict[str, str]
    bf16_error: dict[str, float]


def self_test() -> list[str]:
    """What is wrong with the interpreter lane here, one line each; empty: nothing."""
    computed = {}
    for side in _SIDES:
        try:
            computed[side] = _compute_elsewhere(side)
        except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
            return [f"the {side} interpreter did not run: {_last_line(error)}"]
    stock, corrected = computed["stock"], computed["corrected"]
    problems = [
        f"{kernel}: the corrected interpreter's float32 bits differ from the stock one's"
        for kernel, bits in stock.bits.items()
        if corrected.bits[kernel] != bits
    ]
    problems += [
        f"{kernel}: bf16 is off by {error:.2g} units of 2^-8"
        for kernel, error in corrected.bf16_error.items()
        if not error <= 1.0
    ]
    return problems


def _compute_elsewhere(side: str) -> _Computed:
    done = subprocess.run(
        [sys.executable, "-m", "gatecert.lanes.interpreter.selftest", side],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=_TIME_LIMIT_S,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=_Computed)


def _last_line(error: Exception) -> str:
    stderr = getattr(error, "stderr", None) or b""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else str(error)


def _main(side: str) -> None:
    if side == "corrected":
        from gatecert.lanes.interpreter import activate

        activate()
    from gatecert.lanes.interpreter import selftest_kernels

    computed = _Computed(
        bits=selftest_kernels.float32_bits(),
        bf16_error=selftest_kernels.bf16_error() if side == "corrected" else {},
    )
    sys.stdout.buffer.write(msgspec.json.encode(computed))


if __name__ == "__main__":
    _main(sys.argv[1])
