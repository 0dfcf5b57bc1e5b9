"""Statistics of rows in Triton."""
