"""Activations by the hyperbolic tangent, in Triton."""
