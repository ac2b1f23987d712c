"""Kernels: which operators of a graph run as one kernel, and how a matrix multiplication is tiled."""
