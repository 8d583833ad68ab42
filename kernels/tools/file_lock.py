"""A file lock that names its holder, and is released when its holder dies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from host.deadline import Deadline
from host.progress import Progress, Step
from kernels.errors import StoreBusy, StoreUnusable


@contextmanager
def held(file: Path, what: str, progress: Progress, wait_s: float) -> Iterator[None]:
    """Hold the lock, after waiting for at most `wait_s`.

    Raises StoreBusy naming the holder, StoreUnusable.
    """
    from filelock import FileLock, Timeout  # 90 ms that a look-up in the store does not need

    note = file.with_name(f"{file.name}.holder")
    deadline = Deadline(wait_s, "the build store's lock")
    try:
        lock = FileLock(file)
        while True:
            try:
                lock.acquire(timeout=min(1.0, deadline.remaining()))
                break
            except Timeout:
                if deadline.expired:
                    raise StoreBusy(_holder(note), wait_s) from None
                phase = f"waiting for {_holder(note)}"
                progress(Step(phase, elapsed_s=deadline.elapsed, passing=True))
    except OSError as error:
        why = f"{error.strerror or error}, for {what}"
        raise StoreUnusable(file.parent, why) from error
    try:
        holder = f"process {os.getpid()} ({what}, since {time.strftime('%H:%M:%S')})"
        note.write_text(holder, encoding="utf-8")
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _holder(note: Path) -> str:
    try:
        return note.read_text(encoding="utf-8") or "another process"
    except OSError:
        return "another process"
