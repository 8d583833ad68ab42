"""Download a file by http, https or file URL, and resume an interrupted download.

What has arrived is kept in NAME.part, with the version (ETag or Last-Modified) that it is a part
of in NAME.part.json.  Silence of the network and the whole download have time limits.
"""

from __future__ import annotations

import errno
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from host.deadline import Deadline
from host.files import read_record, write_record
from host.progress import Progress, Step
from kernels.errors import MIB

if TYPE_CHECKING:
    from urllib.request import Request

# The longest wait for an answer, or for the next bytes of one.
SILENCE_S = 20.0
# How often an interrupted transfer is resumed, as long as each brings something.
ATTEMPTS = 4
_CHUNK = 1 << 18
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416
_NOT_FOUND = (404, 410)


class Broken(Exception):
    """No answer, or one that ended early; str() is the cause."""


class NotThere(Broken):
    """The server does not have the file."""


class _BeyondTheEnd(Broken):
    """The part is longer than the file."""


class Download(Struct, frozen=True):
    """The download of one file to `place`, whose directory must exist.

    `deadline` limits all of it, `silence_s` each wait.
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
        """Download the file, or the rest of it, and return its place.

        Raises NotThere, and Broken when attempts bring no more; the part is kept then.
        """
        for attempt in range(ATTEMPTS):
            before = self._arrived()
            try:
                self._fetch()
                break
            except NotThere:
                raise
            except _BeyondTheEnd:
                self.discard()
                if attempt:
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
        """One request, for the rest of the version that the part belongs to."""
        # 50 ms that a kernel in the store does not need.
        from http.client import HTTPException
        from urllib.request import urlopen

        arrived = self._arrived()
        request = self._request(arrived)
        size = None
        try:
            with closing(urlopen(request, timeout=self.silence_s)) as answer:
                begin, size, version = _head(answer)
                if begin != arrived or not arrived:
                    begin = 0
                    # In this order: a mark never describes bytes of another version.
                    self.part.write_bytes(b"")
                    write_record(self._mark, {"url": self.url, "version": version})
                self._receive(answer, begin, size)
        except (OSError, HTTPException, ValueError) as error:
            self._fail(error)
        if size is not None and self._arrived() != size:
            raise Broken(f"it ended after {self._arrived()} of {size} bytes")

    def _request(self, arrived: int) -> Request:
        from urllib.request import Request

        try:
            request = Request(self.url, headers={"User-Agent": "uevt"})
        except ValueError as error:
            raise Broken(str(error)) from error
        mark = read_record(self._mark) or {}
        if arrived and mark.get("url") == self.url and mark.get("version"):
            request.add_header("Range", f"bytes={arrived}-")
            request.add_header("If-Range", str(mark["version"]))
        return request

    def _receive(self, answer: Any, begin: int, size: int | None) -> None:
        with self.part.open("r+b", buffering=0) as file:
            file.seek(begin)
            while piece := answer.read1(_CHUNK):
                file.write(piece)
                self._report(file.tell(), size)
                if self.deadline.expired:
                    raise Broken(f"it did not end within {self.deadline.seconds:.0f} s")

    def _report(self, arrived: int, size: int | None) -> None:
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

    def _fail(self, error: Exception) -> NoReturn:
        """Raise Broken or a class derived from it."""
        from urllib.error import HTTPError

        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise error
        if isinstance(error, HTTPError):
            error.close()
            if error.code == _RANGE_NOT_SATISFIABLE:
                raise _BeyondTheEnd("the part that was kept is longer than the file") from error
            kind = NotThere if error.code in _NOT_FOUND else Broken
            raise kind(f"{error.code} {error.reason}") from error
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise Broken(f"nothing came for {self.silence_s:.0f} s") from error
        if isinstance(reason, FileNotFoundError) or "No such file" in str(reason):
            raise NotThere("No such file or directory") from error
        text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise Broken(text) from error


def _head(answer: Any) -> tuple[int, int | None, str | None]:
    """Where the content of an answer begins, the size of the whole file, its version.

    The answer for a file URL has no status and begins at 0.
    """
    length = answer.headers.get("Content-Length")
    size = int(length) if length and length.isdecimal() else None
    begin = 0
    if getattr(answer, "status", None) == _PARTIAL_CONTENT:
        # "bytes 1000-1999/2000"
        span, _, whole = str(answer.headers.get("Content-Range", "")).partition("/")
        begin = int(span.removeprefix("bytes ").partition("-")[0])
        size = int(whole) if whole.isdecimal() else None
    tag = answer.headers.get("ETag")
    # A weak tag is the same for different bytes.
    strong = tag if tag and not tag.startswith("W/") else None
    return begin, size, strong or answer.headers.get("Last-Modified")
