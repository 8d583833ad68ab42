"""Decoding of what the kernel returns: files, ring buffer pages, perf records."""
