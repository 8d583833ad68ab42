"""Checks before a run: host, limits, stale files, trial boot."""
