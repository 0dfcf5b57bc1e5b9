"""Activations in Triton."""
