"""Saved guest states."""
