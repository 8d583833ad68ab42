"""Files that are replaced atomically and durably, and what killed writers left of them."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import select
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from host.deadline import Deadline

# Prefix of unfinished files.  Their writers hold a lock on them.
TEMPORARY = ".uevt-"
# Of a file that the user names: bytes, and how long the writer of a pipe may take.
_LONGEST = 64 << 20
_PIPE_S = 60.0
_BLOCK = 1 << 20


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


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it.

    Raises OSError, also for a FIFO or a device: reading one may never end.
    """
    file = _open_at_once(path)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def read_given(path: Path) -> bytes:
    """The content of a regular file, or of a pipe such as the shell's <(git diff).

    Raises OSError, also for more than 64 MiB, an empty pipe, or one that does not end.
    """
    with _open_at_once(path) as file:
        kind = stat.S_IFMT(os.fstat(file.fileno()).st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFIFO):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        regular = kind == stat.S_IFREG
        content = file.read(_LONGEST + 1) if regular else _piped(file.fileno())
    if not content and not regular:
        raise OSError(errno.EINVAL, "the pipe is empty", str(path))
    if len(content) > _LONGEST:
        raise OSError(errno.EFBIG, f"holds more than {_LONGEST >> 20} MiB", str(path))
    return content


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


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock, flock(2), on a file or directory.  Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


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


def _open_at_once(path: Path) -> BinaryIO:
    """Open a file to read it; a FIFO without waiting for its writer."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def _piped(descriptor: int) -> bytes:
    """What the writers of a pipe write until they close it, or slightly more than the limit."""
    deadline = Deadline(_PIPE_S, "end of a pipe")
    content = bytearray()
    while len(content) <= _LONGEST:
        try:
            part = os.read(descriptor, _BLOCK)
        except BlockingIOError:
            if not select.select([descriptor], [], [], deadline.remaining())[0]:
                what = f"the pipe did not end within {deadline.limit}"
                raise OSError(errno.ETIMEDOUT, what) from None
        else:
            if not part:
                break
            content += part
    return bytes(content)


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
