"""The catalog: which kernels there are, and where each comes from."""
