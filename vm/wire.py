"""Frames on the channel between host and guest: magic, length, checksum, JSON.

Shared by both ends, so: standard library only.  A stream that does not parse is never guessed
at; the FrameError says which part of the frame was wrong.
"""

from __future__ import annotations

import struct
from _json import encode_basestring_ascii, make_encoder, make_scanner
from binascii import crc32

MAGIC = b"UEV1"
HEADER = struct.Struct("!4sII")
#: Longest payload in bytes; a longer one is a corrupted length (or a case out of bounds).
LIMIT = 8 * 1024 * 1024


class _Scanning:
    """What json.scanner hands to the scanner of its C half, which is all that we use of json.

    Importing json itself brings re, enum and collections: half a second of an emulated boot.
    """

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def _foreign(value: object) -> object:
    raise TypeError(f"{type(value).__name__} cannot cross the channel")


_scan = make_scanner(_Scanning())  # type: ignore[arg-type]  # any object will do
_encode = make_encoder(None, _foreign, encode_basestring_ascii, None, ":", ",", False, False, False)


class FrameError(Exception):
    """The stream is corrupt; `part` is "magic", "length", "checksum", "payload" or "order"."""

    def __init__(self, part: str, detail: str) -> None:
        super().__init__(f"frame {part}: {detail}")
        self.part = part


def pack(message: object) -> bytes:
    """One frame holding the message as JSON.  Raises FrameError("length") beyond LIMIT."""
    return frame(text(message))


def text(message: object) -> bytes:
    """A message as JSON.  Raises TypeError, ValueError for what has no form in it."""
    return "".join(_encode(message, 0)).encode()


def unpack(payload: bytes) -> dict[str, object]:
    """The message in a frame's payload.  Raises FrameError("payload") unless a JSON object."""
    try:
        told = payload.decode()
        message, end = _scan(told, 0)
    except (ValueError, StopIteration, RecursionError) as error:
        raise FrameError("payload", f"not JSON: {error}") from None
    if end != len(told):
        raise FrameError("payload", f"{len(told) - end} characters after the JSON")
    if not isinstance(message, dict):
        raise FrameError("payload", f"a JSON object is expected, not {type(message).__name__}")
    return message


def frame(payload: bytes) -> bytes:
    """A payload with its header.  Raises FrameError("length") beyond LIMIT."""
    length = len(payload)
    if length > LIMIT:
        raise FrameError("length", f"{length} bytes to send, limit {LIMIT}")
    return HEADER.pack(MAGIC, length, _checksum(length, payload)) + payload


def _checksum(length: int, payload: bytes) -> int:
    """The length is under the checksum too: a flipped bit in it must not pass unseen."""
    return crc32(payload, length)


class Decoder:
    """Turns a byte stream into payloads; one per direction and connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes as they came."""
        self._buffer += data

    @property
    def pending(self) -> int:
        """Bytes of a frame that has begun and is not complete."""
        return len(self._buffer)

    def take(self) -> bytes | None:
        """The next complete payload, or None until more bytes come.  Raises FrameError."""
        if len(self._buffer) < HEADER.size:
            self._check_magic()
            return None
        magic, length, checksum = HEADER.unpack_from(self._buffer)
        if magic != MAGIC:
            self._check_magic()
        if length > LIMIT:
            raise FrameError("length", f"{length} bytes announced, limit {LIMIT}")
        end = HEADER.size + length
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[HEADER.size : end])
        if _checksum(length, payload) != checksum:
            raise FrameError("checksum", f"mismatch over {length} bytes")
        del self._buffer[:end]
        return payload

    def _check_magic(self) -> None:
        """Refuse a wrong start at its first byte: waiting for a whole header could be for ever."""
        start = bytes(self._buffer[: len(MAGIC)])
        if not MAGIC.startswith(start):
            raise FrameError("magic", f"{start!r} where {MAGIC!r} is expected")
