"""Kernels to test: what they are, where their source is, how they are built, where they are kept.

`catalog/` holds one TOML per kernel, `config/` the configuration fragments and `variants/` the
patches they name; all of it is data.  A kernel comes out of `build.ensure()` as a
`built.BuiltKernel`: an image, its configuration, and exactly where it came from.  A module for it
comes out of `modules.ensure_module()`.

Nothing here knows user_events or QEMU, and nothing here imports `conformance` or `vm`.
"""
