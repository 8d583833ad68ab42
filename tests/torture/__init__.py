"""Fault injection into runs, builds and saved states."""
