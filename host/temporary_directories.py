"""Directories for a moment, in the temporary one or any other; those of killed owners are swept.

Each is locked by its owner as long as that lives, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "uevt-scratch-"


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A directory below another, by default the temporary one; gone at the end.

    Raises OSError.
    """
    parent = parent or Path(tempfile.gettempdir())
    sweep(parent)
    directory, held = _locked(parent)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(held)


def sweep(parent: Path) -> None:
    """Remove the directories of owners that were killed."""
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            held = _open(left)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(held)


def _locked(parent: Path) -> tuple[Path, int]:
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            held = _open(directory)
            fcntl.flock(held, fcntl.LOCK_EX)
            # Else it was swept before we held it.
            if directory.exists():
                return directory, held
            os.close(held)


def _open(directory: Path) -> int:
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
