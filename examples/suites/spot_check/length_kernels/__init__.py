"""Division of rows by their length, in Triton."""
