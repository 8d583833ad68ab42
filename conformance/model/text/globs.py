"""Patterns of filters on strings: trace_events_filter.c:filter_parse_regex, lib/glob.c."""

from __future__ import annotations

import fnmatch
import re

from conformance.model.errors import NotModelled


def equals(field: bytes, text: bytes, *, whole: bool) -> bool:
    """regex_match_full(): whether the string in a padded field equals a text.

    If not ``whole``, what of the text exceeds the length of the field is ignored.
    """
    if not field:
        raise NotModelled("a string of length 0")
    return _string(field) == (text if whole else text[: len(field)])


def matches(field: bytes, pattern: bytes, *, whole: bool) -> bool:
    """Whether the string in a padded field matches a pattern.

    A star at the start or end is handled without lib/glob.c.
    """
    if pattern.startswith(b"!"):
        return not matches(field, pattern[1:], whole=whole)
    if pattern[:1].isdigit():
        # MATCH_INDEX: no character is special.
        return equals(field, pattern, whole=whole)
    if any(byte in b"[?\\" for byte in pattern) or b"*" in pattern[1:-1]:
        return _globs(field, pattern)
    text = pattern.strip(b"*")
    at_end, at_start = pattern.startswith(b"*"), len(pattern) > 1 and pattern.endswith(b"*")
    if at_end and at_start:
        return text in _string(field)
    if at_start:
        return len(field) >= len(text) and _string(field).startswith(text)
    return _ends(field, text) if at_end else equals(field, text, whole=whole)


def _string(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _ends(field: bytes, text: bytes) -> bool:
    """regex_match_end(): compares the end of the field less one byte, not of the string."""
    length = len(field) - 1
    return length >= len(text) and field[length - len(text) : length] == text


def _globs(field: bytes, pattern: bytes) -> bool:
    """glob_match_len()"""
    if b"\\" in pattern:
        raise NotModelled("a pattern with a backslash")
    expression = fnmatch.translate(pattern.decode("latin-1"))
    return re.match(expression, _string(field).decode("latin-1")) is not None
