"""Hypothesis strategy: valid inputs with a few mutations.

Parsers reject random bytes at the first one; mutations of valid input get past the first checks.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

LONGEST = 1 << 17

_NUMBERS = (0, 1, 7, 8, 127, 128, 255, 4096, 32767, 65535, 1 << 31, (1 << 32) - 1, (1 << 63) - 1)
_DECIMALS = (*(str(n).encode() for n in _NUMBERS), b"9" * 30, b"-1", b"0x10", b"", b"1.5")
_PACKED = tuple(
    struct.pack(form, number & (1 << 8 * struct.calcsize(form)) - 1)
    for form in ("B", "<H", "<I", ">I", "<Q")
    for number in _NUMBERS
)
_TOKENS = (
    *(b"\0", b"\r\n", b"\n", b"\r", b"\x1b[2J", b"\x1b]8;;http://x\x07", b"\x0c", b"\x85"),
    # A surrogate in UTF-8 and in JSON, bidirectional controls, a byte order mark.
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

Mutation = Callable[[st.DrawFn, bytes, Sequence[bytes], Sequence[bytes]], bytes]


@st.composite
def inputs(draw: st.DrawFn, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """A seed with up to five mutations."""
    data = draw(st.sampled_from(seeds))
    for mutate in draw(st.lists(st.sampled_from(_MUTATIONS), max_size=5)):
        data = mutate(draw, data, seeds, tokens)[:LONGEST]
    return data


def _position(draw: st.DrawFn, data: bytes) -> int:
    return draw(st.integers(0, len(data)))


def _replace(
    draw: st.DrawFn, data: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]
) -> bytes:
    """Replace a span, which may be empty, by tokens, numbers, bytes, itself, or nothing."""
    start = _position(draw, data)
    end = min(len(data), start + draw(st.sampled_from((0, 0, 1, 4, 16, 256, 4096))))
    pieces = (*_TOKENS, *tokens, *_PACKED, data[start:end], b"")
    piece = draw(st.sampled_from(pieces) | st.binary(max_size=8))
    return data[:start] + (piece * draw(st.sampled_from((1, 1, 1, 2, 100, 3000)))) + data[end:]


def _cut(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """Continue with the tail of a seed, or with nothing."""
    other = draw(st.sampled_from((b"", *seeds)))
    return data[: _position(draw, data)] + other[_position(draw, other) :]


def _decimal(
    draw: st.DrawFn, data: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]
) -> bytes:
    """Replace a decimal number."""
    found = [match.span() for match in re.finditer(rb"\d+", data)]
    if not found:
        return data
    start, end = draw(st.sampled_from(found))
    return data[:start] + draw(st.sampled_from(_DECIMALS)) + data[end:]


def _nest(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """Nest the rest deeply, balanced or not."""
    opening, closing = draw(st.sampled_from(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"))))
    depth, at = draw(st.sampled_from((40, 1000, 30_000))), _position(draw, data)
    inner = draw(st.sampled_from((b"1", data[at:])))
    return data[:at] + opening * depth + inner + draw(st.sampled_from((b"", closing * depth)))


def _lines(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """Move, repeat or drop a line, or change all line ends."""
    lines = data.splitlines(keepends=True) or [b""]
    line = lines[draw(st.integers(0, len(lines) - 1))]
    match draw(st.sampled_from(("drop", "repeat", "move", "ends"))):
        case "ends":
            return data.replace(b"\n", draw(st.sampled_from((b"\r\n", b"\r", b" "))))
        case "drop" | "move" as how:
            lines.remove(line)
            if how == "drop":
                return b"".join(lines)
    lines.insert(draw(st.integers(0, len(lines))), line)
    return b"".join(lines)


def _json(draw: st.DrawFn, data: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """Replace one value of a JSON document, or of a line of it, by one of another type."""
    lines = [data] if data[:2] in (b"{\n", b"[\n") else data.split(b"\n")
    at = draw(st.integers(0, len(lines) - 1))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return data
    lines[at] = json.dumps(_retyped(draw, value)).encode()
    return b"\n".join(lines)


def _retyped(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value with one part replaced, removed or repeated."""
    deeper = draw(st.integers(0, 9))
    if not value or not isinstance(value, (dict, list)) or deeper == 9:
        return draw(st.sampled_from(_VALUES))
    key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    copy = value.copy()
    if deeper == 8:
        del copy[key]
    elif deeper == 7 and isinstance(copy, list):
        copy.insert(key, copy[key])
    else:
        copy[key] = _retyped(draw, copy[key])
    return copy


_MUTATIONS: tuple[Mutation, ...] = (_replace, _replace, _cut, _decimal, _nest, _lines, _json, _json)
