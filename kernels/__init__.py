"""Kernels to test: catalog, sources, builds, and the store that keeps them.

`catalog/` holds one TOML file per kernel, `config/` the configuration fragments and `variants/` the
patches that these name.  `build.build.ensure()` returns a `BuiltKernel`: an image, its
configuration, and its exact origin.  `build.out_of_tree_modules.ensure_module()` returns a module
for it.

This package knows neither user_events nor QEMU, and imports neither `conformance` nor `vm`.
"""
