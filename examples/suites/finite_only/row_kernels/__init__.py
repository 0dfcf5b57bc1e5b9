"""Row-wise kernels in Triton."""
