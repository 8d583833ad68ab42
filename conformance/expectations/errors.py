"""Errors in files of expectations."""

from __future__ import annotations

from host.errors import FileError


class ExpectationError(FileError):
    """An invalid entry."""
