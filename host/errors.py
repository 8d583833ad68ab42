"""Bases of the errors of all packages."""

from __future__ import annotations

from pathlib import Path


class UevtError(Exception):
    """An error raised on purpose: str() is what happened, `hint` is what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def with_hint(self) -> str:
        """Message and hint on one line."""
        return f"{self}; {self.hint}" if self.hint else str(self)


class DeadlineExpired(UevtError):
    """A `Deadline` expired; the message says what was waited for, and how long."""


class FileError(UevtError):
    """A file that cannot be used; `key` is the key at fault, "" for the whole file."""

    def __init__(self, file: Path, key: str, what: str, hint: str) -> None:
        where = f"{file}: {key}" if key else str(file)
        super().__init__(f"{where}: {what}", hint)
        self.file = file
        self.key = key
        # For tracebacks: a case file may read a table when it is imported.
        self.add_note(f"hint: {hint}")
