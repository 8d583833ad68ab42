"""Pages of trace_pipe_raw: decoding, and the text that the model expects."""

from __future__ import annotations

import struct

import pytest

from conformance.ops.decoding import trace_page

OWN = 400
PID = 77


def event(record: bytes, *, delta: int = 0) -> bytes:
    """A data event as ring_buffer.c lays it out."""
    padded = record.ljust(max(-(-len(record) // 4) * 4, 12), b"\xee")
    if len(padded) <= 112:
        return struct.pack("<I", len(padded) // 4 | delta << 5) + padded
    return struct.pack("<II", delta << 5, len(padded) + 4) + padded


def record(payload: bytes, *, type_: int = OWN, flags: int = 0, pid: int = PID) -> bytes:
    """Common fields and payload."""
    return struct.pack("<HBBi", type_, flags, 0, pid) + payload


def raw(data: bytes, *, bits: int = 0, rest: bytes = b"") -> bytes:
    """A page with this data and bytes after it."""
    return (struct.pack("<QQ", 12345, len(data) | bits) + data + rest).ljust(4096, b"\0")


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 103, 104, 105, 108, 112, 1000])
def test_text_of_the_model_matches_the_page(size: int) -> None:
    payload = bytes(range(256)) * 4
    found = record(payload[:size])
    own = trace_page.PageRecord(own_type=True, own_pid=True, record=found)
    text = trace_page.describe_records([own])
    assert trace_page.describe(raw(event(found)), OWN, PID, [size]) == text


def test_ids_and_times_are_omitted() -> None:
    extend = struct.pack("<II", 30 | 5 << 5, 1)
    stamp = struct.pack("<II", 31 | 5 << 5, 1)
    data = extend + event(record(b"abcd"), delta=99) + stamp + event(record(b"efgh", pid=1))
    text = trace_page.describe(raw(data), OWN, PID, [4, 4])
    assert text == (
        "commit 32\n"
        "type_len 3 length 12 type own flags 0 pid own: 61 62 63 64\n"
        "type_len 3 length 12 type own flags 0 pid other: 65 66 67 68\n"
        "rest zero\n"
    )


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (event(record(b"abcd", type_=1)), "type other flags 0 pid own"),
        # In an interrupt.
        (event(record(b"abcd", flags=8)), "type own flags 8 pid own"),
        # need_resched.
        (event(record(b"abcd", flags=4)), "type own flags 0 pid own"),
        (struct.pack("<II", 29, 12) + bytes(8), "event 29 of 8 bytes at 0"),
        (struct.pack("<I", 1) + b"abcd", "event 1 of 4 bytes at 0"),
        (struct.pack("<II", 0, 1 << 20), "event 0 of 0 bytes at 0"),
    ],
)
def test_unexpected_events_are_shown(data: bytes, line: str) -> None:
    assert line in trace_page.describe(raw(data), OWN, PID, [4])


def test_missed_events_and_trailing_bytes_are_shown() -> None:
    data = event(record(b"abcd"))
    text = trace_page.describe(raw(data, bits=1 << 31, rest=b"\0\7"), OWN, PID, [4])
    assert text.startswith("commit 16\nmissed\n")
    assert "rest 00 07 00" in text


def test_short_page() -> None:
    assert trace_page.describe(b"", OWN, PID, []) == "0 bytes\n"


def test_padding_of_unknown_size_is_shown() -> None:
    assert "61 62 63 64 65 ee ee ee" in trace_page.describe(
        raw(event(record(b"abcde"))), OWN, PID, []
    )
