"""Kernels of a team that has one."""
