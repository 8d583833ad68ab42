"""Patterns of filters on strings: trace_events_filter.c:filter_parse_regex, lib/glob.c."""

from __future__ import annotations

import fnmatch
import re

from conformance.abi.profile import Profile
from conformance.model.errors import NotModelled


def equals(field: bytes, text: bytes, profile: Profile) -> bool:
    """regex_match_full(): whether the string in a padded field equals a text."""
    if not field:
        raise NotModelled("a string of length 0")
    whole = len(text) <= len(field) or profile.has("whole_pattern_compared")
    return _string(field) == (text if whole else text[: len(field)])


def matches(field: bytes, pattern: bytes, profile: Profile) -> bool:
    """Whether the string in a padded field matches a pattern.

    A star at the start or end is handled without lib/glob.c.
    """
    if pattern.startswith(b"!"):
        return not _matches(field, pattern[1:], profile)
    return _matches(field, pattern, profile)


def _matches(field: bytes, pattern: bytes, profile: Profile) -> bool:
    if pattern[:1].isdigit():
        # MATCH_INDEX, which is meant for set_ftrace_filter: no character is special.
        is_pattern = profile.fixed("filter-digit-pattern")
        return _globs(field, pattern) if is_pattern else equals(field, pattern, profile)
    if any(byte in b"[?\\" for byte in pattern) or b"*" in pattern[1:-1]:
        return _globs(field, pattern)
    text = pattern.strip(b"*")
    at_end, at_start = pattern.startswith(b"*"), len(pattern) > 1 and pattern.endswith(b"*")
    if at_end and at_start:
        return text in _string(field)
    if at_start:
        return len(field) >= len(text) and _string(field).startswith(text)
    return _ends(field, text, profile) if at_end else equals(field, text, profile)


def _string(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _ends(field: bytes, text: bytes, profile: Profile) -> bool:
    """regex_match_end(), which takes the string to be one byte shorter than its field."""
    length = len(field) - 1
    if len(_string(field)) != length and profile.fixed("filter-end-pattern"):
        return _string(field).endswith(text)
    return length >= len(text) and field[length - len(text) : length] == text


def _globs(field: bytes, pattern: bytes) -> bool:
    """glob_match_len()"""
    if b"\\" in pattern:
        raise NotModelled("a pattern with a backslash")
    if b"\0" not in field:
        # regex_match_glob() of older releases reads beyond it.
        raise NotModelled("a pattern on a full array")
    expression = fnmatch.translate(pattern.decode("latin-1"))
    return re.match(expression, _string(field).decode("latin-1")) is not None
