"""The perf ring: decoding, and the model's writer."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.memory.pages import PAGE_SIZE
from conformance.model.state.perf_event import ANY_CPU, PerfEvent, Ring
from conformance.ops.decoding import perf_ring
from tests.model.generated import STEADY

RAW, TID, PERIOD = 1 << 10, 1 << 1, 1 << 8


def mapping(records: bytes, *, head: int | None = None) -> bytes:
    """A mapped ring of one data page with these bytes."""
    page = bytearray(PAGE_SIZE)
    page[1024:1040] = struct.pack("<QQ", len(records) if head is None else head, 0)
    return bytes(page) + records.ljust(PAGE_SIZE, b"\0")


def sample(body: bytes) -> bytes:
    """A PERF_RECORD_SAMPLE of the kernel."""
    return struct.pack("<IHH", 9, 1, 8 + len(body)) + body


@pytest.mark.parametrize(
    ("sample_type", "body", "text"),
    [
        (RAW, b"\x0c\0\0\0" + b"\1\2\4\4\5\6\7\x08" + b"abcd", "raw 12: 61 62 63 64"),
        # Interrupts off.
        (RAW, b"\x0c\0\0\0" + b"\1\2\1\4\5\6\7\x08" + b"abcd", "raw 12 flags 0x1: 61 62 63 64"),
        (TID, b"\5\0\0\0\5\0\0\0", "one thread"),
        (TID, b"\5\0\0\0\6\0\0\0", "process 5 thread 6"),
        (PERIOD, b"\2\0\0\0\0\0\0\0", "period 2"),
        # common_pid is that of another process.
        (
            TID | RAW,
            b"\5\0\0\0\5\0\0\0" + b"\x0c\0\0\0" + b"\0\0\0\0\7\0\0\0" + b"abcd",
            "one thread raw 12 common_pid 7 of 5: 61 62 63 64",
        ),
        (PERIOD, b"\2\0\0\0\0\0\0\0" + b"more", "period 2 rest 6d 6f 72 65"),
    ],
)
def test_sample(sample_type: int, body: bytes, text: str) -> None:
    shown = perf_ring.describe(mapping(sample(body)), sample_type)
    assert shown == f"head {8 + len(body)} tail 0\nSAMPLE misc 1 size {8 + len(body)} {text}\n"


def test_ids_are_omitted() -> None:
    one = sample(b"\x0c\0\0\0" + b"\1\1\0\1\1\1\1\1" + b"abcd")
    other = sample(b"\x0c\0\0\0" + b"\2\2\0\2\2\2\2\2" + b"abcd")
    assert perf_ring.describe(mapping(one), RAW) == perf_ring.describe(mapping(other), RAW)


def test_lost_and_unknown_records() -> None:
    lost = struct.pack("<IHHQQ", 2, 0, 24, 77, 3)
    other = struct.pack("<IHH", 3, 0, 10) + b"ab"
    shown = perf_ring.describe(mapping(lost + other), RAW)
    assert shown.splitlines()[1:] == ["LOST misc 0 size 24 lost 3", "record 3 misc 0 size 10 61 62"]


@pytest.mark.parametrize("size", [0, 7, 4000])
def test_impossible_size_is_corrupt(size: int) -> None:
    record = struct.pack("<IHH", 9, 1, size) + bytes(16)
    assert "corrupt" in perf_ring.describe(mapping(record), RAW)


def test_slow_reader_sees_overwritten() -> None:
    assert perf_ring.describe(mapping(b"", head=5000), RAW) == "head 5000 tail 0\noverwritten\n"


@STEADY
@given(
    lengths=st.lists(st.integers(0, 1500), max_size=12),
    reading=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_model_ring_is_decoded(lengths: list[int], reading: list[bool]) -> None:
    buffer = Ring.fresh(2, overwrites=False)
    event = PerfEvent(0, [], ANY_CPU, 1, RAW, True, False, False, ring=buffer)
    last = ""
    for length, reads in zip(lengths, reading, strict=False):
        event.deliver(bytes(8) + bytes([length % 251]) * length)
        shown = perf_ring.describe(b"".join(bytes(page.content) for page in buffer.pages), RAW)
        assert "corrupt" not in shown
        assert "overwritten" not in shown
        last = shown
        if reads:
            buffer.pages[0].content[1032:1040] = buffer.head.to_bytes(8, "little")
    assert event.count == len(lengths)
    assert last == "" or last.startswith(f"head {buffer.head} tail ")


def test_model_ring_is_never_full() -> None:
    buffer = Ring.fresh(2, overwrites=False)
    buffer.sample(bytes(PAGE_SIZE - 8), 0)
    assert (buffer.head, buffer.lost) == (0, 1)
    buffer.sample(bytes(PAGE_SIZE - 16 - 24), 0)
    assert (buffer.head, buffer.lost) == (PAGE_SIZE - 8, 0)


def test_padding_keeps_old_bytes() -> None:
    buffer = Ring.fresh(2, overwrites=True)
    for _ in range(PAGE_SIZE // 16):
        buffer.sample(b"\xee" * 8, 0)
    assert buffer.head == PAGE_SIZE
    buffer.sample(b"\x11" * 4, 4)
    assert bytes(buffer.pages[1].content[8:16]) == b"\x11" * 4 + b"\xee" * 4
