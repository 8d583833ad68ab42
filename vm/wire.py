"""Frames on the channel between host and guest: magic, length, checksum, JSON.

Both ends import this module, so it uses only the standard library.  A corrupt stream is never
resynchronized; FrameError names the wrong part of the frame.
"""

from __future__ import annotations

import struct
from _json import encode_basestring_ascii, make_encoder, make_scanner
from binascii import crc32

MAGIC = b"UEV1"
HEADER = struct.Struct("!4sII")
#: Maximum payload in bytes; a larger length is treated as corrupt.
LIMIT = 8 * 1024 * 1024


class _Scanning:
    """Parameters for the C scanner of json, used directly.

    Importing json would import re, enum and collections: 0.5 s of an emulated boot.
    """

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} cannot cross the channel")


_scan = make_scanner(_Scanning())  # type: ignore[arg-type]  # any object will do
_encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False)


class FrameError(Exception):
    """The stream is corrupt; `part` is "magic", "length", "checksum", "payload" or "order"."""

    def __init__(self, part: str, detail: str) -> None:
        super().__init__(f"frame {part}: {detail}")
        self.part = part


def pack(message: object) -> bytes:
    """A frame with a message as JSON.  Raises FrameError("length") beyond LIMIT."""
    return frame(text(message))


def text(message: object) -> bytes:
    """A message as JSON.  Raises TypeError or ValueError if it cannot be encoded."""
    return "".join(_encode(message, 0)).encode()


def unpack(payload: bytes) -> dict[str, object]:
    """The message in a frame's payload.  Raises FrameError("payload") unless a JSON object."""
    try:
        content = payload.decode()
        message, end = _scan(content, 0)
    except (ValueError, StopIteration, RecursionError) as error:
        raise FrameError("payload", f"not JSON: {error}") from None
    if end != len(content):
        raise FrameError("payload", f"{len(content) - end} characters after the JSON")
    if not isinstance(message, dict):
        raise FrameError("payload", f"expected a JSON object, not {type(message).__name__}")
    return message


def frame(payload: bytes) -> bytes:
    """A payload with its header.  Raises FrameError("length") beyond LIMIT."""
    length = len(payload)
    if length > LIMIT:
        raise FrameError("length", f"{length} bytes to send, limit {LIMIT}")
    return HEADER.pack(MAGIC, length, _checksum(length, payload)) + payload


def _checksum(length: int, payload: bytes) -> int:
    """The checksum covers the length too."""
    return crc32(payload, length)


class Decoder:
    """Splits a byte stream into payloads; one per direction and connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer += data

    @property
    def pending(self) -> int:
        """Bytes of an incomplete frame."""
        return len(self._buffer)

    def take(self) -> bytes | None:
        """The next complete payload, or None.  Raises FrameError."""
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
        """Refuse a wrong first byte at once: a whole header may never come."""
        start = bytes(self._buffer[: len(MAGIC)])
        if not MAGIC.startswith(start):
            raise FrameError("magic", f"expected {MAGIC!r}, not {start!r}")
