"""What can be wrong with a file of expectations; the author of the file mends it."""

from __future__ import annotations

from pathlib import Path


class ExpectationError(Exception):
    """An entry that cannot be used: ``file``, ``key`` and ``hint`` say where and what to do."""

    def __init__(self, file: Path, key: str, what: str, hint: str) -> None:
        super().__init__(f"{file}: {key}: {what}")
        self.file = file
        self.key = key
        self.hint = hint
