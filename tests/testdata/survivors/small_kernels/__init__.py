"""Small right kernels, one or two to a file, that the mutants of `situations.toml` are made of."""
