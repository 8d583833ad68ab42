"""Benchmarks of the harness (`make bench`)."""
