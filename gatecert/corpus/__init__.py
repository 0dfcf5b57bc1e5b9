"""The built-in corpus: correct Triton kernels of our own, written as teams write them.

Each file is one family: `@triton.jit` kernels, and launchers that take tensors in the order of
their operation, with any strides, and return a new tensor. Kernels compute in float32 whatever
the dtype; `gatecert.toml` beside this file declares them as subjects.
"""
