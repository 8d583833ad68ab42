"""Runs that are disturbed on purpose, and what has become of their results."""
