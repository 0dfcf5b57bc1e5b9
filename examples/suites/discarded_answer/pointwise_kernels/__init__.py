"""Element-wise kernels in Triton."""
