"""Errors in the files of a run, for the user to fix."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from host.errors import UevtError


class ReportError(UevtError):
    """An unusable file or directory of results."""

    def __init__(self, path: Path, what: str, hint: str) -> None:
        super().__init__(f"{path}: {what}", hint)

    @classmethod
    def unreadable(cls, path: Path, error: OSError) -> Self:
        """A file that cannot be read."""
        return cls(path, error.strerror or str(error), "name a directory of results")

    @classmethod
    def malformed(cls, path: Path, what: str) -> Self:
        """A file with invalid content."""
        return cls(path, what, "restore the file, or run again")
