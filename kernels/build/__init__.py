"""Configure and build kernels and modules; garbage-collect the store."""
