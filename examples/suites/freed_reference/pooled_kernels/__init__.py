"""Kernels whose outputs come from a pool."""
