"""A file lock that names its holder, and is released when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from host.deadline import Deadline
from host.files import is_locked
from host.progress import Progress, Step
from kernels.errors import StoreBusy, StoreUnusable

# How often a waiting process tries again.
_RETRY_S = 0.2
# The same for a lock that is held for microseconds.
_PAUSE_S = 0.01


@contextmanager
def held(
    file: Path, what: str, progress: Progress, wait_s: float, *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock, after waiting for at most `wait_s`; several may hold it `shared`.

    Raises StoreBusy naming the holder, StoreUnusable.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        why = f"{error.strerror or error}, for {what}"
        raise StoreUnusable(file.parent, why) from error
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        _wait(descriptor, kind, Deadline(wait_s, "the build store's lock"), progress)
        # The last holder may have ended long ago.
        os.ftruncate(descriptor, 0)
        if not shared:
            holder = f"process {os.getpid()} ({what}, since {time.strftime('%H:%M:%S')})"
            os.pwrite(descriptor, holder.encode(), 0)
        yield
    finally:
        os.close(descriptor)


def open_shared(path: Path) -> int:
    """Open a file or directory and lock it, shared, while the descriptor is open.

    Raises OSError, also for one that is locked exclusively for longer than `is_shared` does.
    """
    deadline = Deadline(_RETRY_S, "the lock of an item")
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return descriptor
        except OSError as error:
            if not isinstance(error, BlockingIOError) or deadline.expired:
                os.close(descriptor)
                raise
        time.sleep(_PAUSE_S)


def is_shared(path: Path) -> bool:
    """Whether a process keeps what `open_shared` has opened.

    False for a path that is gone, or cannot be locked.
    """
    # NFS refuses to lock what is not open for writing; other file systems have no locks.
    with suppress(OSError):
        return is_locked(path)
    return False


def _wait(descriptor: int, kind: int, deadline: Deadline, progress: Progress) -> None:
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = _holder(descriptor)
            if deadline.expired:
                raise StoreBusy(holder, deadline.seconds) from None
        progress(Step(f"waiting for {holder}", elapsed_s=deadline.elapsed, passing=True, idle=True))
        time.sleep(min(_RETRY_S, deadline.remaining()))


def _holder(descriptor: int) -> str:
    written = os.pread(descriptor, 4096, 0).decode(errors="replace")
    return written or _sharing(descriptor) or "another process"


def _sharing(descriptor: int) -> str:
    """The processes that share the lock of an open file, as far as /proc names them; else ""."""
    found = set()
    with suppress(OSError, ValueError, IndexError):
        # The name of the file in /proc/locks is that of a lock of ours: on overlayfs and btrfs,
        # fstat() has other numbers.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        own = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        inode = own.partition("lock:")[2].split()[5]
        for line in Path("/proc/locks").read_text().splitlines():
            # "1: FLOCK  ADVISORY  READ 4711 fe:01:12345 0 EOF"; a line that waits has "->".
            _, kind, *_, pid, file, _, _ = line.split()
            if kind == "FLOCK" and file == inode and int(pid) > 0:
                found.add(int(pid))
    return " and ".join(f"process {pid}" for pid in sorted(found))
