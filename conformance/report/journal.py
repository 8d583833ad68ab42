"""journal.jsonl: one line of JSON per thing that happened, on the disk before the next.

Whatever becomes of this process, the lines that were completed stay readable.  A line
counts when its newline is there: ``kill -9`` can tear only the last one, a reader leaves
that out and the next writer cuts it off.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.outcome import CaseResult, SchemaError, decode, encode
from conformance.report.errors import ReportError
from conformance.report.files import sync_directory
from conformance.report.record import RunHead

NAME = "journal.jsonl"


@dataclass(frozen=True, slots=True)
class Journal:
    """What a journal says.

    ``results`` are the results that stand, by case id in the order in which they ended;
    ``attempts`` those that were followed by a re-run.  ``ended`` is false when the run was
    cut off, ``torn`` when an incomplete last line was left out.
    """

    head: RunHead | None
    results: dict[str, CaseResult]
    attempts: tuple[CaseResult, ...]
    ended: bool
    torn: bool


class JournalWriter:
    """Appends to a journal; use it as a context manager.

    Every method returns once its line is on the disk, and raises OSError (no space, for
    one) when it cannot get there.  Without ``sync`` it only is with the operating system:
    enough for a run that is made again in seconds.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        """Create ``path`` or go on behind its last complete line.

        Raises OSError, and ReportError while another process writes this journal.
        """
        self._sync = sync
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            # Two runs resumed in one directory would cut off each other's lines.  The lock
            # goes when this process does, however it goes.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            end = _complete(self._descriptor)
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)
            sync_directory(path.parent)
        except BlockingIOError as error:
            os.close(self._descriptor)
            mend = "wait for that run to end, or name another --out"
            raise ReportError(path, "is being written by another run", mend) from error
        except BaseException:
            os.close(self._descriptor)
            raise

    def begin(self, head: RunHead) -> None:
        """The run starts, or goes on."""
        self._append({"event": "run", **encode(head)})

    def attempt(self, result: CaseResult) -> None:
        """A case ended in a way that calls for a re-run; this result does not stand yet."""
        self._append({"event": "attempt", "case": result.to_json()})

    def case(self, result: CaseResult) -> None:
        """A case ended; of several results for one id the last stands."""
        self._append({"event": "case", "case": result.to_json()})

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

    def _append(self, entry: dict[str, Any]) -> None:
        rest = memoryview((json.dumps(entry, allow_nan=False) + "\n").encode("ascii"))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        if self._sync:
            os.fsync(self._descriptor)


def read_journal(path: Path) -> Journal:
    """Everything ``path`` holds, its torn last line left out.

    Raises ReportError for a file that cannot be read, or a complete line that is no
    journal entry.
    """
    head: RunHead | None = None
    results: dict[str, CaseResult] = {}
    attempts: list[CaseResult] = []
    ended = False
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReportError.unreadable(path, error) from error
    for where, entry in _entries(path, data):
        ended = False
        try:
            match entry:
                case {"event": "run"}:
                    head = decode(RunHead, entry, where)
                case {"event": "attempt", "case": case}:
                    attempts.append(CaseResult.from_json(case, f"{where}.case"))
                case {"event": "case", "case": case}:
                    result = CaseResult.from_json(case, f"{where}.case")
                    # The order is that of the results that stand.
                    results.pop(result.id, None)
                    results[result.id] = result
                case {"event": "end"}:
                    ended = True
                case _:
                    raise SchemaError(where, "is no entry of a journal")
        except SchemaError as error:
            raise ReportError.malformed(path, str(error)) from error
    torn = not data.endswith(b"\n") and bool(data)
    return Journal(head, results, tuple(attempts), ended, torn)


def _entries(path: Path, data: bytes) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        where = f"line {number}"
        try:
            yield where, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ReportError.malformed(path, f"{where}: {error}") from error


def _complete(descriptor: int) -> int:
    """The offset behind the last newline of an open file."""
    size = os.fstat(descriptor).st_size
    block = 1 << 16
    while size > 0:
        start = max(0, size - block)
        newline = os.pread(descriptor, size - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        size = start
    return 0
