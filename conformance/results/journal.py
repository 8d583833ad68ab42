"""journal.jsonl: one line of JSON per event of a run, on disk before the next one.

However this process ends, completed lines stay readable.  A line is complete with its newline:
``kill -9`` can tear only the last one, which readers ignore and the next writer cuts off.  Each
line ends with a digest of itself and the line before, so that ``conformance.results.replay``
detects lines that were edited, lost or moved.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from msgspec import to_builtins

from conformance.results.case_result import CaseResult
from conformance.results.contradiction import Contradiction
from conformance.results.errors import ReportError
from conformance.results.run import Functions, RunHead
from conformance.results.shard import Shard
from host import files

NAME = "journal.jsonl"
# Start of every line, and what precedes the digest at its end.
BEGINNING = b'{"event": "'
CHECK = b', "check": "'
_DIGITS = 16
_BLOCK = 1 << 16


def sealed(body: bytes, before: bytes) -> bytes:
    """A journal line: a JSON object with its digest, chained to the digest ``before``."""
    return body[:-1] + CHECK + seal(body, before) + b'"}\n'


def seal(body: bytes, before: bytes) -> bytes:
    """The digest of an object after a line with the digest ``before``."""
    return hashlib.sha256(before + body).hexdigest()[:_DIGITS].encode()


class JournalWriter:
    """Append to a journal; use it as a context manager.

    Every method but ``running`` returns once its line is on disk.  All raise OSError, for example
    if the disk is full, and then leave no partial line.  Without ``sync`` lines may stay in the
    page cache: enough for a run that takes seconds to repeat.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        """Create ``path``, or continue after its last complete line.

        The file is not changed before the first line is written.  Raises OSError, and ReportError
        while another process writes this journal.
        """
        self._sync = sync
        self._started = time.monotonic()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            # Two processes resuming one run would cut off each other's lines.  The kernel releases
            # the lock when this process ends, in any way.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._require_name(path)
            self._end, self._check = _last(self._descriptor)
            files.sync(path.parent)
        except BaseException as error:
            os.close(self._descriptor)
            if isinstance(error, BlockingIOError):
                raise in_use(path) from error
            raise

    def _require_name(self, path: Path) -> None:
        """Refuse a file that was replaced while we waited for the lock: another run began."""
        ours = os.fstat(self._descriptor)
        try:
            there = path.stat()
        except FileNotFoundError:
            raise in_use(path) from None
        if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
            raise in_use(path)

    def begin(self, head: RunHead) -> None:
        """The run starts or resumes."""
        self._append({"event": "run", **to_builtins(head)})

    def plan(
        self, selected: int, functions: Functions | None = None, shards: tuple[Shard, ...] = ()
    ) -> None:
        """The number of selected cases, including those that ended before the run resumed."""
        more = {"functions": functions, "shards": shards}
        known = {name: to_builtins(value) for name, value in more.items() if value}
        self._append({"event": "plan", "selected": selected, **known})

    def guests(self, how: str) -> None:
        """How guests start, if there is anything unusual."""
        self._append({"event": "guests", "how": how})

    def running(self, case_id: str, tier: str) -> None:
        """A case starts."""
        self._append({"event": "running", "id": case_id, "tier": tier}, sync=False)

    def attempt(self, result: CaseResult) -> None:
        """A case ended and will run again; this result is not final."""
        self._append({"event": "attempt", "case": result.to_json()})

    def case(self, result: CaseResult) -> None:
        """A case ended."""
        self._append({"event": "case", "case": result.to_json()})

    def extra(self, result: CaseResult) -> None:
        """A result that is not of a selected case; the last one with an id replaces the others."""
        self._append({"event": "extra", "case": result.to_json()})

    def contradiction(self, found: Contradiction) -> None:
        """The kernel contradicts a dated switch."""
        self._append({"event": "contradiction", "contradiction": to_builtins(found)})

    def end(self, note: str = "") -> None:
        """The run ended."""
        self._append({"event": "end", "note": note})

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, entry: dict[str, Any], *, sync: bool = True) -> None:
        entry["s"] = round(time.monotonic() - self._started, 3)
        body = json.dumps(entry, allow_nan=False).encode("ascii")
        line = sealed(body, self._check)
        try:
            # Overwrite a torn line of an earlier writer.
            os.ftruncate(self._descriptor, self._end)
            os.lseek(self._descriptor, self._end, os.SEEK_SET)
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            if self._sync and sync:
                os.fsync(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            raise
        self._end += len(line)
        self._check = seal(body, self._check)


def in_use(path: Path) -> ReportError:
    """The error for a journal that another process writes."""
    hint = "wait for that run to end, or name another directory"
    return ReportError(path, "is being written by another run", hint)


def is_in_use(path: Path) -> bool:
    """Whether another process writes this journal.  Raises OSError."""
    with suppress(FileNotFoundError):
        return files.is_locked(path)
    return False


def _last(descriptor: int) -> tuple[int, bytes]:
    """The offset after the last newline of an open file, and the digest before it."""
    size = os.fstat(descriptor).st_size
    while size > 0:
        start = max(0, size - _BLOCK)
        newline = os.pread(descriptor, size - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            tail = os.pread(descriptor, _DIGITS + 3, max(0, end - _DIGITS - 3))
            return end, tail[: -len(b'"}\n')]
        size = start
    return 0, b""
