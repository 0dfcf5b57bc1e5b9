"""RMS normalisation in Triton."""
