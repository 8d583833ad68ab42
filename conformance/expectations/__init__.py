"""Known deviations of kernels from the documented ABI, as validated TOML files.

An expectation gives reason and link for one deviation.  It covers one case and one pattern:
anything else in that case still fails, and the case fails (FIXED) once the deviation is gone.
"""
