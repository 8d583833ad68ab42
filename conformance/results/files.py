"""Writing files so that a reader never sees half of one, and reading what may be damaged."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from conformance.results.errors import ReportError

# How the names begin of what is there for a moment, and is nobody's if its writer was killed.
TEMPORARY = ".uevt-"


def read_json(path: Path) -> Any:
    """What a file of JSON holds.  Raises ReportError where it cannot be read, or is none."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ReportError.unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise ReportError.malformed(path, f"is not JSON: {error}") from error


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in UTF-8: afterwards it holds the old or the new text.

    The new text is on the disk before the name moves, and the name before this returns,
    so that this also holds for a host that loses power.  Raises OSError; the old file is
    then untouched and nothing else is left behind.
    """
    handle, temporary = _temporary(path)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            # mkstemp gives 0600; results are for everybody the directory is for.
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sweep(directory: Path) -> None:
    """Remove what writers left in a directory who were killed.  Others are left alone."""
    for left in directory.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
                continue
            handle = os.open(left, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # Its writer holds it as long as it lives.
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(handle)


def _temporary(path: Path) -> tuple[int, Path]:
    """A new file beside another, held so that nobody sweeps it."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f"{TEMPORARY}{path.name}.", dir=path.parent)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        # Swept before we held it.
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Make names created in or moved into ``directory`` durable.  Raises OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    # There is no call that only asks; this process writes its reports from one thread.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
