"""Writes with numbers that do not fit into a byte, 16 bits, or a page."""

from __future__ import annotations

import struct

from conformance.cases.case import surface
from conformance.client.addresses import PAGE
from conformance.client.data_file import Word
from conformance.client.user_events import UserEvents
from conformance.ops import Discard, Write

case = surface(
    "write",
    spec="trace_events_user.c:user_events_write_core",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data",
    profiles="6.4..",
    tier="full",
)


@case(spec="refs->events", doc="by the index that the registration gave", profiles="5.18..")
def test_index_beyond_a_byte(ue: UserEvents) -> None:
    """A descriptor with 258 events writes each by its own index, and returns it again."""
    data = ue.open_data()
    words = ue.process.map()
    indices = [
        data.register(f"{ue.name(f'n{n}')} u8 v", word=Word(ue.process, words + 4 * n)).index
        for n in range(258)
    ]
    assert indices[255:] == [255, 256, 257]
    again = data.register(f"{ue.name('n257')} u8 v", word=Word(ue.process, words + 4 * 258))
    assert again.index == 257
    ue.tracefs.enable(ue.name("n257"))
    ue.tracefs.enable(ue.name("n1"))
    assert data.write_event(257, b"\7").value == 5
    assert data.write_event(258, b"\7").errno == "ENOENT"
    assert ue.tracefs.records() == [ue.line("v=(7)", dump="07", name="n257")]


@case(
    spec="fault_in_iov_iter_readable of all that is written",
    doc="nothing is said of memory that is not there yet",
    needs="ebadf_when_disabled",
)
def test_page_behind_is_away(ue: UserEvents) -> None:
    """A long payload is read to its end, even if its last page is not present yet."""
    data = ue.event("struct s a 3896; u32 b", enabled=True).data
    ue.tracefs.directory(ue.name()).set_filter("b == 67305985")
    at = ue.process.map(2, shared=True)
    ue.process.store(at + PAGE, bytes([1, 2, 3, 4]))
    start = at + PAGE - 3900
    ue.process.store(start, bytes(3900))
    ue.process.run(Discard(ue.process.actor, at + PAGE, PAGE))
    assert ue.process.run(Write(ue.process.actor, data.slot, start, 3904)).value == 3904
    assert len(ue.tracefs.records()) == 1


@case(spec="min_size", doc="nothing is said of a payload that is too short")
def test_shorter_than_64_kib(ue: UserEvents) -> None:
    """An event of 65540 bytes accepts nothing shorter: EINVAL."""
    event = ue.event("struct large v 65540", enabled=True)
    assert event.write(bytes(100)).errno == "EINVAL"


@case(
    spec="trace_events_user.c:user_event_validate: validator->offset",
    doc="nothing is said of data that lies outside of the payload",
    needs="dynamic_fields_validated",
)
def test_location_far_behind(ue: UserEvents) -> None:
    """Dynamic data is validated at any offset, past 300 bytes as well."""
    event = ue.event("char[300] a; __rel_loc char[] s", enabled=True)
    text = b"x\0"
    assert event.write(bytes(300) + struct.pack("<HH", 0, 2) + text).value == 310
    assert event.write(bytes(300) + struct.pack("<HH", 0, 3) + text).errno == "EFAULT"
