"""A matrix product in Triton."""
