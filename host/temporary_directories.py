"""Scratch directories that are swept if their owner is killed.

The owner holds a lock on the directory, which ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from host import files

_PREFIX = "uevt-scratch-"


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A directory in `parent`, by default the temporary directory; removed at the end.

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
    """Remove the directories of killed owners."""
    files.sweep(parent, _PREFIX)


def _locked(parent: Path) -> tuple[Path, int]:
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            held = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(held, fcntl.LOCK_EX)
            # Otherwise another process swept it before it was locked.
            if directory.exists():
                return directory, held
            os.close(held)
