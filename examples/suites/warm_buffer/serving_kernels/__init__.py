"""Kernels of a server, which write where they are told to."""
