"""What can be wrong with the files of a run.  All of it is for the user to mend."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from host.errors import UevtError


class ReportError(UevtError):
    """A file of results that cannot be used."""

    def __init__(self, path: Path, what: str, hint: str) -> None:
        super().__init__(f"{path}: {what}", hint)
        self.path = path

    @classmethod
    def unreadable(cls, path: Path, error: OSError) -> Self:
        """The system does not give the file."""
        return cls(path, error.strerror or str(error), "name a directory that a run has written")

    @classmethod
    def malformed(cls, path: Path, what: str) -> Self:
        """The file is there and is not what it should be."""
        return cls(path, what, "restore the file, or run again to write a new one")
