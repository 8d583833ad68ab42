"""Checks before a run: limits of the host, stale files, trial boot."""
