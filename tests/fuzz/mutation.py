"""Valid inputs made wrong: bytes changed, cut, doubled and spliced, and values of other types.

Random bytes are refused at their first one; what has to be found lies behind what looks right.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

# No input is longer: what a reader does with one takes milliseconds.
LONGEST = 1 << 17

_NUMBERS = (0, 1, 7, 8, 127, 128, 255, 4096, 32767, 65535, 1 << 31, (1 << 32) - 1, (1 << 63) - 1)
_DEEP = (40, 1000, 30_000)
_TOKENS = (
    *(b"\0", b"\r\n", b"\n", b"\r", b"\x1b[2J", b"\x1b]8;;http://x\x07", b"\x0c", b"\x85"),
    # A surrogate in UTF-8, and in JSON; controls that turn text round; a byte order mark.
    *(b"\xed\xa0\x80", b"\\ud800", "\u202e\u2066".encode(), b"\xef\xbb\xbf", "\u2028".encode()),
    *(b"..", b"../", b"/", b"\\", b'"', b"'", b"#", b"%s", b"-", b"=", b":"),
    *(b"[", b"]", b"{", b"}", b"(", b")"),
    *(b"null", b"true", b"NaN", b"1e999", b"-0", b"9" * 400, b"1" + b"0" * 5000, b"a" * 300),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1 << 63, 1 << 64, 10**400, 1e308, -0.5, float("nan")),
    *("", "x", "-", "0g", "\ud800", "\0", "\x1b[31m", "\u202e", "ok 1 a # SKIP", "a\nb", "é" * 50),
    *([], [[]], [None], {}, {"": None}, {"id": "x"}),
)
_DIGITS = re.compile(rb"\d+")
_LINE = re.compile(rb"[^\n]*\n?")


class Mutator:
    """Makes inputs out of a corpus, in an order that a seed decides."""

    def __init__(self, seed: int | str, tokens: Sequence[bytes] = ()) -> None:
        self.random = Random(seed)
        self._tokens = (*_TOKENS, *tokens)
        self._ways: tuple[Callable[[bytes], bytes], ...] = (
            self._flip,
            self._overwrite,
            self._insert,
            self._remove,
            self._double,
            self._cut,
            self._number,
            self._nest,
            self._lines,
            self._ends,
            self._value,
            self._value,
            self._value,
        )

    def made_of(self, corpus: Sequence[bytes]) -> bytes:
        """One input: a member of the corpus, changed in one way or several."""
        data = self.random.choice(corpus)
        if self.random.random() < 0.1:
            data = self._spliced(data, self.random.choice(corpus))
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 5))):
            data = self.random.choice(self._ways)(data)
        return data[:LONGEST]

    def _at(self, data: bytes) -> int:
        return self.random.randrange(len(data) + 1)

    def _span(self, data: bytes) -> tuple[int, int]:
        """A piece, mostly a short one."""
        start = self._at(data)
        longest = self.random.choice((1, 4, 16, 256, 4096))
        return start, min(len(data), start + self.random.randrange(1, longest + 1))

    def _spliced(self, data: bytes, other: bytes) -> bytes:
        return data[: self._at(data)] + other[self._at(other) :]

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        at = self.random.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << self.random.randrange(8)]) + data[at + 1 :]

    def _overwrite(self, data: bytes) -> bytes:
        at = self._at(data)
        form = self.random.choice(("B", "<H", "<I", ">I", "<Q"))
        size = struct.calcsize(form)
        number = self.random.choice(_NUMBERS) & ((1 << 8 * size) - 1)
        return data[:at] + struct.pack(form, number) + data[at + size :]

    def _insert(self, data: bytes) -> bytes:
        at = self._at(data)
        times = self.random.choice((1, 1, 1, 2, 100, 3000))
        return data[:at] + self.random.choice(self._tokens) * times + data[at:]

    def _remove(self, data: bytes) -> bytes:
        start, end = self._span(data)
        return data[:start] + data[end:]

    def _double(self, data: bytes) -> bytes:
        start, end = self._span(data)
        times = self.random.choice((1, 1, 1, 10, 1000))
        return data[:end] + (data[start:end] * times)[:LONGEST] + data[end:]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._at(data)]

    def _number(self, data: bytes) -> bytes:
        found = list(_DIGITS.finditer(data))
        if not found:
            return data
        match = self.random.choice(found)
        number = self.random.choice((*map(str, _NUMBERS), "9" * 30, "-1", "0x10", "", "1.5"))
        return data[: match.start()] + number.encode() + data[match.end() :]

    def _nest(self, data: bytes) -> bytes:
        opening, closing = self.random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")))
        depth = self.random.choice(_DEEP)
        at = self._at(data)
        middle = data[at:] if self.random.random() < 0.5 else b"1"
        ending = closing * depth if self.random.random() < 0.5 else b""
        return data[:at] + opening * depth + middle + ending + data[at:]

    def _lines(self, data: bytes) -> bytes:
        lines = _LINE.findall(data)
        one, other = self.random.randrange(len(lines)), self.random.randrange(len(lines))
        match self.random.randrange(3):
            case 0:
                lines[one], lines[other] = lines[other], lines[one]
            case 1:
                lines.insert(one, lines[other])
            case _:
                del lines[one]
        return b"".join(lines)

    def _ends(self, data: bytes) -> bytes:
        """With the ends of lines of another system, or none."""
        return data.replace(b"\n", self.random.choice((b"\r\n", b"\r", b" ")))

    def _value(self, data: bytes) -> bytes:
        """Where it is JSON, or lines of it, with one value of another kind."""
        lines = data.split(b"\n")
        at = self.random.randrange(len(lines))
        if len(lines) > 1 and lines[-1] == b"" and not lines[at].startswith(b"{"):
            at = 0
        text = data if lines[0] in (b"{", b"[") else lines[at]
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self._flip(data)
        changed = json.dumps(self._other(value)).encode()
        if text is data:
            return changed
        lines[at] = changed
        return b"\n".join(lines)

    def _other(self, value: Any) -> Any:
        """The same with one thing in it that is not."""
        if isinstance(value, dict) and value and self.random.random() < 0.9:
            key = self.random.choice(list(value))
            left = {name: each for name, each in value.items() if name != key}
            return left if self.random.random() < 0.1 else {**value, key: self._other(value[key])}
        if isinstance(value, list) and value and self.random.random() < 0.9:
            at = self.random.randrange(len(value))
            match self.random.randrange(10):
                case 0:
                    return value[:at] + value[at + 1 :]
                case 1:
                    return value[: at + 1] + value[at:]
            return [*value[:at], self._other(value[at]), *value[at + 1 :]]
        return self.random.choice(_VALUES)
