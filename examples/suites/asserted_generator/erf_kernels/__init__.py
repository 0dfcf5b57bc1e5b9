"""Functions of the error function in Triton."""
