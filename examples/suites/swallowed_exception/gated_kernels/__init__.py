"""Gated activations in Triton."""
