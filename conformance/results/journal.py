"""journal.jsonl: one line of JSON per thing that happened, on the disk before the next.

Whatever becomes of this process, the lines that were completed stay readable.  A line
counts when its newline is there: ``kill -9`` can tear only the last one, a reader leaves
that out and the next writer cuts it off.  Each line ends with a digest of itself and of the
one before: a line that was edited, lost or put elsewhere is noticed (see
``conformance.results.replay``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.results.case_result import CaseResult, Contradiction
from conformance.results.errors import ReportError
from conformance.results.json_codec import encode
from conformance.results.run import RunHead
from host import files

NAME = "journal.jsonl"
# How every line begins, and what stands before the digest at its end.
BEGINNING = b'{"event": "'
CHECK = b', "check": "'
_DIGITS = 16
_BLOCK = 1 << 16


def sealed(body: bytes, before: bytes) -> bytes:
    """A line of the journal: an object of JSON with its digest, which ``before`` goes into."""
    return body[:-1] + CHECK + seal(body, before) + b'"}\n'


def seal(body: bytes, before: bytes) -> bytes:
    """The digest of an object, behind a line with the digest ``before``."""
    return hashlib.sha256(before + body).hexdigest()[:_DIGITS].encode()


class JournalWriter:
    """Appends to a journal; use it as a context manager.

    Every method but ``running`` returns once its line is on the disk; all raise OSError (no
    space, for one) when it cannot get there, and leave no part of it.  Without ``sync`` a line
    only is with the operating system: enough for a run that is made again in seconds.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        """Create ``path`` or go on behind its last complete line.

        Nothing is changed before the first line is written.  Raises OSError, and ReportError
        while another process writes this journal.
        """
        self._sync = sync
        self._started = time.monotonic()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            # Two runs resumed in one directory would cut off each other's lines.  The lock
            # goes when this process does, however it goes.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._require_name(path)
            self._end, self._check = _last(self._descriptor)
            files.sync(path.parent)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise in_use(path) from error
        except BaseException:
            os.close(self._descriptor)
            raise

    def _require_name(self, path: Path) -> None:
        """Who removed the file while we waited has begun another run here."""
        ours = os.fstat(self._descriptor)
        try:
            there = path.stat()
        except FileNotFoundError:
            raise in_use(path) from None
        if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
            raise in_use(path)

    def begin(self, head: RunHead) -> None:
        """The run starts, or goes on."""
        self._append({"event": "run", **encode(head)})

    def plan(self, selected: int) -> None:
        """So many cases are to end, those that have ended before the run went on included."""
        self._append({"event": "plan", "selected": selected})

    def guests(self, how: str) -> None:
        """How guests come up, where there is something to tell of it."""
        self._append({"event": "guests", "how": how})

    def running(self, case_id: str, tier: str) -> None:
        """A case starts."""
        self._append({"event": "running", "id": case_id, "tier": tier}, sync=False)

    def attempt(self, result: CaseResult) -> None:
        """A case ended in a way that calls for a re-run; this result does not stand yet."""
        self._append({"event": "attempt", "case": result.to_json()})

    def case(self, result: CaseResult) -> None:
        """A case ended."""
        self._append({"event": "case", "case": result.to_json()})

    def beside(self, result: CaseResult) -> None:
        """Something that is no selected case ended; of several results for one id the last
        stands."""
        self._append({"event": "beside", "case": result.to_json()})

    def contradiction(self, found: Contradiction) -> None:
        """The kernel contradicts a dated switch."""
        self._append({"event": "contradiction", "contradiction": encode(found)})

    def end(self, note: str = "") -> None:
        """The run is over."""
        self._append({"event": "end", "note": note})

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _append(self, entry: dict[str, Any], *, sync: bool = True) -> None:
        entry["s"] = round(time.monotonic() - self._started, 3)
        body = json.dumps(entry, allow_nan=False).encode("ascii")
        line = sealed(body, self._check)
        try:
            # What is torn there would else stand before it.
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
    """What is wrong with a journal that somebody writes."""
    hint = "wait for that run to end, or name another directory"
    return ReportError(path, "is being written by another run", hint)


def is_in_use(path: Path) -> bool:
    """Whether another process writes this journal.  Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _last(descriptor: int) -> tuple[int, bytes]:
    """The offset behind the last newline of an open file, and the digest before it."""
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
