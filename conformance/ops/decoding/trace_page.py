"""Text of a page of trace_pipe_raw, one line per record.

Source: ring_buffer.c: struct buffer_data_page, rb_calculate_event_length, rb_update_event,
ring_buffer_read_page; include/linux/ring_buffer.h: struct ring_buffer_event.  Omitted because
they differ between runs or configurations: times, ids of events and processes, the flag
need_resched and the preemption count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from msgspec import Struct

from conformance.abi.grammar import TRACE_ENTRY_SIZE

SIZE = 4096
_HEADER = struct.Struct("<QQ")
DATA_SIZE = SIZE - _HEADER.size
_WORD = 4
_LENGTH_BITS = 5
# type_len, the first five bits of an event; up to 28 it is the length in words.
_LONGEST_SMALL = 28
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
# Bits of the commit field: events were missed, and their number is stored after the last one.
_MISSED = 3 << 30
# struct trace_entry, and the flags that are compared: interrupts off; hard, soft and non-maskable
# interrupt; bottom halves off.
_ENTRY = struct.Struct("<HBBi")
COMPARED_FLAGS = 0x01 | 0x08 | 0x10 | 0x40 | 0x80


class PageRecord(Struct, frozen=True):
    """A record's bytes, and whether type and process are the reader's own."""

    own_type: bool
    own_pid: bool
    record: bytes


def describe_records(records: Sequence[PageRecord]) -> str:
    """Text of a page with exactly these records."""
    lines = []
    used = 0
    for shown in records:
        length = padded(len(shown.record))
        kind = length // _WORD if length <= _LONGEST_SMALL * _WORD else 0
        used += length + (_WORD if kind else 2 * _WORD)
        lines.append(_line(kind, length, shown))
    return "".join(f"{line}\n" for line in (f"commit {used}", *lines, "rest zero"))


def padded(size: int) -> int:
    """The length of a record of ``size`` bytes, common fields included, with its padding."""
    # An event of 12 bytes could not be distinguished from a time extend and its event.
    return max(-(-size // _WORD) * _WORD, TRACE_ENTRY_SIZE + _WORD)


def _line(kind: int, length: int, shown: PageRecord, flags: int = 0) -> str:
    type_, pid = ("own" if own else "other" for own in (shown.own_type, shown.own_pid))
    payload = shown.record[TRACE_ENTRY_SIZE:].hex(" ")
    return f"type_len {kind} length {length} type {type_} flags {flags} pid {pid}: {payload}"


def describe(raw: bytes, type_: int, pid: int, sizes: Sequence[int]) -> str:
    """Text of a page; ``type_`` and ``pid`` are the ids of the own event and process."""
    if len(raw) < _HEADER.size:
        return f"{len(raw)} bytes\n"
    _, word = _HEADER.unpack_from(raw)
    commit = word & ~_MISSED
    data = raw[_HEADER.size :]
    lines = ["missed"] if word & _MISSED else []
    extended = 0
    records = 0
    for kind, body, start in _events(data[:commit]):
        if kind in (_TIME_EXTEND, _TIME_STAMP):
            extended += 2 * _WORD
            continue
        if kind == _PADDING or len(body) < TRACE_ENTRY_SIZE:
            lines.append(f"event {kind} of {len(body)} bytes at {start}")
            continue
        found, flags, _, process = _ENTRY.unpack_from(body)
        size = sizes[records] + TRACE_ENTRY_SIZE if records < len(sizes) else len(body)
        records += 1
        record = PageRecord(found == type_, process == pid, body[:size])
        lines.append(_line(kind, len(body), record, flags & COMPARED_FLAGS))
    rest = "rest zero" if not any(data[commit:]) else f"rest {data[commit:].hex(' ')}"
    return "".join(f"{line}\n" for line in (f"commit {commit - extended}", *lines, rest))


def bodies(raw: bytes) -> Iterator[bytes]:
    """The records of a page, with their padding; events that hold times are left out."""
    _, word = _HEADER.unpack_from(raw)
    for kind, body, _ in _events(raw[_HEADER.size : _HEADER.size + (word & ~_MISSED)]):
        if kind not in (_PADDING, _TIME_EXTEND, _TIME_STAMP):
            yield body


def _events(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """type_len, content and position of the events of a page."""
    position = 0
    while position < len(data):
        start = position
        kind = data[position] & (1 << _LENGTH_BITS) - 1
        position += _WORD
        if kind in (_TIME_EXTEND, _TIME_STAMP):
            length = _WORD
        elif kind == 0 or kind == _PADDING:
            # The length includes its own word.
            length = max(int.from_bytes(data[position : position + _WORD], "little") - _WORD, 0)
            position += _WORD
        else:
            length = kind * _WORD
        yield kind, data[position : position + length], start
        position += length
