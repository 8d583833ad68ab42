"""Known deviations: a TOML file per subject, and the loader that validates them.

An expectation explains beforehand, with reason and link, how a kernel contradicts its
documentation.  It covers exactly one case and one pattern; anything else in that case
still fails, and so does the case once the deviation is gone.
"""
