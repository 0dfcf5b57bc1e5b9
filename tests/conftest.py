"""One thread per test process: there are as many processes as cores, and tensors here are so small
that a second thread only waits for the first, which multiplies what a test costs."""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # read when torch and numpy are imported, which is later
