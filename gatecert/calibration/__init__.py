"""Fit tolerances on correct kernels, and say how far they held on what they were not fitted on."""
