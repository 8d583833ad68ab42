"""Files that are replaced atomically and durably, and what killed writers left of them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# Prefix of unfinished files.  Their writers hold a lock on them.
TEMPORARY = ".uevt-"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace a file: afterwards, even after a power cut, it has the old or the new content.

    A text is written as UTF-8; what that lacks, as in a path of other bytes, is escaped.  Raises
    OSError; the old file is then untouched and nothing else is left behind.
    """
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    descriptor, temporary = _temporary(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def read_record(file: Path) -> dict[str, object] | None:
    """A JSON object that can be made again: None if it is absent or damaged."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def write_record(file: Path, record: Mapping[str, object]) -> None:
    """Write what `read_record` reads, atomically.  Raises OSError."""
    write_atomically(file, json.dumps(record, indent=1))


def digest_of(file: Path) -> str:
    """sha256 of a file's content, in hex."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Flush a file, or the names in a directory, to disk.  Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(directory: Path, prefix: str = TEMPORARY) -> None:
    """Remove files and directories with that prefix, unless a living owner holds their lock."""
    for left in directory.glob(f"{prefix}*"):
        with suppress(OSError):
            # Neither wait for a writer of a FIFO, nor follow a link that another user created.
            descriptor = os.open(left, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()
            finally:
                os.close(descriptor)


def _temporary(path: Path) -> tuple[int, Path]:
    """Create a locked file in the directory of another."""
    while True:
        name = path.with_name(f"{TEMPORARY}{path.name}.{os.urandom(4).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, name
        # Another process swept it before it was locked.
        os.close(descriptor)
