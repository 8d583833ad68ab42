"""Fetching a file by its URL: http, https or file, in the background, and on from where it broke.

Nothing may hang: whatever the network does, silence has an end.  What has arrived of a file is
kept beside its place, with the mark (ETag or Last-Modified) of the version that it is a part of.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from host.deadline import Deadline
from host.files import read_record, write_record
from host.progress import Progress, Step
from kernels.errors import MIB

if TYPE_CHECKING:
    from urllib.request import Request

# Without an answer, or with no byte more of one, for so long, nothing more is expected.
SILENCE_S = 20.0
# How often a transfer that moves on may break off before a run gives up.
ATTEMPTS = 4
_CHUNK = 1 << 18
_AHEAD = 8
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416
_NOT_FOUND = (404, 410)


class Broken(Exception):
    """No answer, or one that ended early; str() says how."""


class NotThere(Broken):
    """Whoever answers does not have the file."""


class _BeyondTheEnd(Broken):
    """What was kept is longer than the file."""


@dataclass(frozen=True, slots=True)
class Download:
    """One file on its way to a place.

    `deadline` is for all of it, `silence_s` for each wait; the file's directory must exist.
    """

    url: str
    place: Path
    deadline: Deadline
    progress: Progress
    silence_s: float = SILENCE_S

    @property
    def part(self) -> Path:
        """What has arrived."""
        return self.place.with_name(f"{self.place.name}.part")

    @property
    def _mark(self) -> Path:
        return self.place.with_name(f"{self.place.name}.part.json")

    def run(self) -> Path:
        """Fetch it, from where it broke off, now or in an earlier run.

        Raises NotThere, and Broken when it brings no more; what has arrived is kept then.
        """
        for attempt in range(ATTEMPTS):
            before = self._arrived()
            try:
                self._fetch()
                break
            except (NotThere, _BeyondTheEnd) as error:
                if isinstance(error, NotThere) or attempt:
                    raise
            except Broken:
                if attempt == ATTEMPTS - 1 or self._arrived() <= before or self.deadline.expired:
                    raise
        self.part.replace(self.place)
        self._mark.unlink(missing_ok=True)
        return self.place

    def discard(self) -> None:
        """Remove everything that has arrived."""
        for file in (self.place, self.part, self._mark):
            file.unlink(missing_ok=True)

    def _arrived(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _fetch(self) -> None:
        """One request, for what is missing of the version that the first part is of."""
        from urllib.request import Request  # 50 ms that a kernel of the store does not need

        arrived = self._arrived()
        try:
            request = Request(self.url, headers={"User-Agent": "uevt"})
        except ValueError as error:
            raise Broken(str(error)) from error
        mark = read_record(self._mark) or {}
        if arrived and mark.get("url") == self.url and mark.get("version"):
            request.add_header("Range", f"bytes={arrived}-")
            request.add_header("If-Range", str(mark["version"]))
        with closing(_Transfer(request)) as transfer:
            waiting = transfer.pieces(self.silence_s, self.deadline)
            try:
                head = next(waiting)
            except _BeyondTheEnd:
                self.discard()
                raise
            assert isinstance(head, _Head)
            begin = arrived if head.begin == arrived else 0
            if begin == 0:
                # In this order: a mark never stands beside the bytes of another version.
                self.part.write_bytes(b"")
                write_record(self._mark, {"url": self.url, "version": head.version})
            with self.part.open("r+b") as file:
                file.seek(begin)
                for piece in waiting:
                    assert isinstance(piece, bytes)
                    file.write(piece)
                    self._tell(file.tell(), head.size)
        if head.size is not None and self._arrived() != head.size:
            raise Broken(f"it ended after {self._arrived()} of {head.size} bytes")

    def _tell(self, arrived: int, size: int | None) -> None:
        self.progress(
            Step(
                self.deadline.what,
                elapsed_s=self.deadline.elapsed,
                done=arrived // MIB,
                expected=None if size is None else size // MIB,
                unit="MiB",
                passing=True,
            )
        )


@dataclass(frozen=True, slots=True)
class _Head:
    """What an answer says before its content: where that begins, the whole size, the version."""

    begin: int
    size: int | None
    version: str | None


class _Transfer:
    """A request in a thread of its own, which nobody waits for longer than a limit.

    Name servers, connections and slow servers each have limits of their own or none at all.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._pieces: queue.Queue[_Head | bytes | Broken | None] = queue.Queue(_AHEAD)
        self._unwanted = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def close(self) -> None:
        """Let the thread end when it next can."""
        self._unwanted.set()

    def pieces(self, silence_s: float, deadline: Deadline) -> Iterator[_Head | bytes]:
        """The head of the answer, then its content.  Raises Broken, NotThere."""
        while True:
            if deadline.expired:
                raise Broken(f"it did not end within {deadline.seconds:.0f} s")
            try:
                piece = self._pieces.get(timeout=min(silence_s, deadline.remaining()))
            except queue.Empty:
                raise Broken(f"nothing came for {silence_s:.0f} s") from None
            if piece is None:
                return
            if isinstance(piece, Broken):
                raise piece
            yield piece

    def _work(self) -> None:
        from urllib.request import urlopen

        try:
            with urlopen(self._request, timeout=SILENCE_S) as answer:
                self._put(_head(answer))
                while piece := answer.read1(_CHUNK):
                    self._put(piece)
            self._put(None)
        except _Unwanted:
            pass
        except Exception as error:
            # A thread has nobody to raise to: whatever it was ends this request.
            self._report(_explained(error))

    def _report(self, trouble: Broken) -> None:
        with suppress(_Unwanted):
            self._put(trouble)

    def _put(self, piece: _Head | bytes | Broken | None) -> None:
        while not self._unwanted.is_set():
            try:
                self._pieces.put(piece, timeout=1.0)
                return
            except queue.Full:
                continue
        raise _Unwanted


class _Unwanted(Exception):
    """Nobody waits for the rest."""


def _explained(error: Exception) -> Broken:
    from urllib.error import HTTPError

    if isinstance(error, HTTPError):
        error.close()
        if error.code == _RANGE_NOT_SATISFIABLE:
            return _BeyondTheEnd("what was kept of it is longer than the file")
        if error.code in _NOT_FOUND:
            return NotThere(f"{error.code} {error.reason}")
        return Broken(f"{error.code} {error.reason}")
    reason = getattr(error, "reason", error)
    if isinstance(reason, FileNotFoundError) or "No such file" in str(reason):
        return NotThere("No such file or directory")
    return Broken(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__)


def _head(answer: Any) -> _Head:
    """What a response of urllib says; a file's has no status and begins at 0."""
    length = answer.headers.get("Content-Length")
    size = int(length) if length and length.isdecimal() else None
    begin = 0
    if getattr(answer, "status", None) == _PARTIAL_CONTENT:
        # "bytes 1000-1999/2000"
        span, _, whole = str(answer.headers.get("Content-Range", "")).partition("/")
        begin = int(span.removeprefix("bytes ").partition("-")[0])
        size = int(whole) if whole.isdecimal() else None
    tag = answer.headers.get("ETag")
    # A weak tag calls different bytes the same.
    strong = tag if tag and not tag.startswith("W/") else None
    return _Head(begin, size, strong or answer.headers.get("Last-Modified"))
