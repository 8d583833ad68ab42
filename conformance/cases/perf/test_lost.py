"""The perf ring buffer: lost records, and behaviour when it is full."""

from __future__ import annotations

import mmap

from conformance.cases.case import surface, variants
from conformance.cases.support.perf_samples import A_SAMPLE, B_SAMPLE, A
from conformance.client.addresses import PAGE
from conformance.client.perf import listen
from conformance.client.user_events import UserEvents

case = surface(
    "perf",
    spec="kernel/events/ring_buffer.c",
    doc="include/uapi/linux/perf_event.h@v6.12:perf_event_mmap_page",
    needs="perf_sink",
    tier="full",
    facilities="perf",
)


@case(spec="__perf_output_begin", doc="include/uapi/linux/perf_event.h@v6.12:PERF_RECORD_LOST")
def test_lost(ue: UserEvents) -> None:
    """A sample that finds no room is lost; the next that fits is preceded by the number lost."""
    data = ue.event("u32 a").data
    event = listen(ue.process, ue.name())
    ring = event.map()
    # 8 of header, 4 of size, 8 of common fields, 2004 of payload: only two fit.
    long = b"\xee" * 2004
    assert [data.write_event(0, long).value for _ in range(5)] == [2008] * 5
    assert ring.lines()[0] == "head 4048 tail 0"
    assert event.count == 5
    ring.read_up_to(4048)
    assert data.write_event(0, A).value == 8
    assert ring.lines() == ["head 4096 tail 4048", "LOST misc 0 size 24 lost 3", A_SAMPLE]
    # Reported once.
    assert data.write_event(0, A).value == 8
    assert ring.lines()[-1] == "SAMPLE misc 1 size 24 raw 12: 41 00 00 00"
    assert ring.lines()[0] == "head 4120 tail 4048"


@case(
    spec="ring_buffer_has_space",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: what is written gets to "
    "whatever tool is attached",
)
@variants((4068, 4088), (4076, 0))
def test_lost_exactly_full(ue: UserEvents, length: int, head: int) -> None:
    """A ring is never filled to its last byte: a sample of exactly that size is lost."""
    event = ue.event("u32 a")
    ring = listen(ue.process, ue.name()).map()
    assert event.write(bytes(length)).ok
    assert ring.lines()[0] == f"head {head} tail 0"


@case(spec="__perf_output_begin")
def test_wraps(ue: UserEvents) -> None:
    """A ring that is consumed wraps, even within a sample; data_head only grows."""
    event = ue.event("u32 a")
    ring = listen(ue.process, ue.name()).map()
    event.write(bytes(4060))
    ring.read_up_to(4080)
    event.write(b"1234567890ab")
    lines = [
        "head 4112 tail 4080",
        "SAMPLE misc 1 size 32 raw 20: 31 32 33 34 35 36 37 38 39 30 61 62",
    ]
    assert ring.lines() == lines


@case(
    spec="ring_buffer_init",
    doc="include/uapi/linux/perf_event.h@v6.12: a ring mapped without PROT_WRITE is overwritten",
)
def test_overwrites(ue: UserEvents) -> None:
    """A ring mapped read-only is overwritten, and no sample is lost."""
    event = ue.event("u32 a")
    ring = listen(ue.process, ue.name()).map(protection=mmap.PROT_READ)
    assert ring.read_up_to(8).errno == "EFAULT"
    for _ in range(3):
        event.write(b"\xee" * 2004)
    assert ring.lines() == ["head 6072 tail 0", "overwritten"]
    event.write(A)
    # 6072 is 1976 past the end: type, misc and size, then the raw size.
    written = b"\x09\0\0\0\x01\0\x18\0\x0c\0\0\0"
    assert ue.process.load(ring.address + PAGE + 1976, 12).data == written


@case(spec="rb_alloc", tier="quick")
def test_no_records_page(ue: UserEvents) -> None:
    """A ring without data pages takes no samples, and the event still counts."""
    data = ue.event("u32 a").data
    event = listen(ue.process, ue.name())
    ring = event.map(1)
    assert data.write_event(0, A).value == 8
    assert ue.process.load(ring.address + 1024, 8).data == bytes(8)
    assert event.count == 1


@case(spec="kernel/events/core.c:perf_output_begin")
def test_mapped_later(ue: UserEvents) -> None:
    """Writes before the ring was mapped are counted, and not found in it."""
    data = ue.event("u32 a").data
    event = listen(ue.process, ue.name())
    data.write_event(0, A)
    ring = event.map()
    data.write_event(0, b"\x42\0\0\0")
    assert ring.lines() == ["head 24 tail 0", B_SAMPLE]
    assert event.count == 2
