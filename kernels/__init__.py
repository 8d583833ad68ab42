"""Kernels to test: what they are, where their source is, how they are built, where they are kept.

`catalog/` holds one TOML per kernel and `config/` the configuration fragments they name; both
are data.  A kernel comes out of `build.ensure()` as a `store.BuiltKernel`: an image, its
configuration, and exactly where it came from.

Nothing here knows user_events or QEMU, and nothing here imports `conformance` or `vm`.
"""
