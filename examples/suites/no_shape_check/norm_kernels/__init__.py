"""Normalisations in Triton."""
