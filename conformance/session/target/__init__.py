"""The kernel under test: image, arguments, modules, coverage."""
