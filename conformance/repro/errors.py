"""Errors of this package."""

from __future__ import annotations


class NotExpressible(ValueError):
    """A program that cannot be written in the language asked for; the text says why."""
