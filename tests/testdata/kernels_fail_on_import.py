"""Kernels of a package whose import fails."""

raise RuntimeError("this package needs a licence server")
