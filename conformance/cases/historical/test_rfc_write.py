"""Writing in the first version: all data is payload, and almost nothing is rejected."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.rfc_v1 import PATCH, bound_data, enabled_data
from conformance.client.addresses import KERNEL_HALF
from conformance.client.rfc_v1 import register

DOC = f"{PATCH}: the payload is written to the descriptor that registered"
case = surface("rfc", spec="user_events_write", doc=DOC, level="behaviour", profiles="rfc-v1")


@case(spec="user_event_ftrace")
@variants(
    ("number", b"\x2a\0\0\0", "2a 00 00 00"),
    ("shorter", b"\x2a", "2a"),
    ("longer", b"\x2a\0\0\0more", "2a 00 00 00 6d 6f 72 65"),
    ("like-an-index", b"\xff\xff\xff\xff\x01", "ff ff ff ff 01"),
)
def test_write_all(ue: UserEvents, payload: bytes, dump: str) -> None:
    """All data is recorded, whatever its length and the event's fields."""
    assert enabled_data(ue, ";u32\ta\t4\t0").write(payload).value == len(payload)
    assert ue.tracefs.records() == [dump]


@case(spec="user_event_ftrace")
def test_write_no_fields(ue: UserEvents) -> None:
    """An event without fields accepts any payload; records are in the order of writing."""
    data = enabled_data(ue)
    assert (data.write(b"ab").value, data.write(b"c").value) == (2, 1)
    assert ue.tracefs.records() == ["61 62", "63"]


@case(spec="user_event_ftrace")
@doc("trace_events_user.c@rfc-v1: offsets in __data_loc values must be aware of the common fields")
def test_write_not_located(ue: UserEvents) -> None:
    """A location is recorded as written, neither adjusted nor validated."""
    data = enabled_data(ue, ";__data_loc char[]\tm\t4\t0")
    # Offset of the text in the record, in the payload, and invalid.
    assert (data.write(b"\x0c\0\3\0hi\0").value, data.write(b"\x04\0\3\0hi\0").value) == (7, 7)
    assert data.write(b"\xff\xff\xff\xffhi\0").value == 7
    assert ue.tracefs.records() == [
        "0c 00 03 00 68 69 00",
        "04 00 03 00 68 69 00",
        "ff ff ff ff 68 69 00",
    ]


@case(spec="user_event_print_trace", doc="trace_events_user.c@rfc-v1: hex", level="detail")
def test_write_dump(ue: UserEvents) -> None:
    """A record is shown as bytes, with or without a print fmt."""
    enabled_data(ue, ';u32\ta\t4\t0;print_fmt\t"a=%u", REC->a\t0').write(bytes(range(20)))
    assert ue.tracefs.records() == ["00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13"]


@case
def test_write_of_descriptor(ue: UserEvents) -> None:
    """Data goes to the event of the descriptor, of which there may be many."""
    first = enabled_data(ue)
    second = bound_data(ue, ue.name())
    other = bound_data(ue, ue.name("other"))
    assert (first.write(b"a").value, other.write(b"-").value, second.write(b"b").value) == (1, 1, 1)
    assert first.dup().write(b"c").value == 1
    assert first.of(ue.fork(ue.process)).write(b"d").value == 1
    assert ue.tracefs.records() == ["61", "62", "63", "64"]


@case(doc="trace_events_user.c@rfc-v1: says nothing of errors", isolation="none")
def test_write_unbound(ue: UserEvents) -> None:
    """Writing on a descriptor without an event is ENOENT."""
    assert ue.open_data().write(b"x").errno == "ENOENT"
    assert ue.open_data().writev([b"x", b"y"]).errno == "ENOENT"


@case(spec="fs/read_write.c:vfs_write", level="detail")
def test_write_write_only(ue: UserEvents) -> None:
    """A write-only descriptor suffices, a read-only one does not: EBADF."""
    reader, writer = ue.open_data(os.O_RDONLY), ue.open_data(os.O_WRONLY)
    assert (register(reader, ue.name()).errno, register(writer, ue.name()).errno) == ("", "")
    assert reader.write(b"x").errno == "EBADF"
    assert writer.write(b"x").value == 1


@case(doc="trace_events_user.c@rfc-v1: says nothing of errors", level="detail")
def test_write_nothing(ue: UserEvents) -> None:
    """A write of zero bytes is EFAULT, enabled or not."""
    data = bound_data(ue, ue.name())
    assert data.write(b"").errno == "EFAULT"
    ue.tracefs.enable(ue.name())
    assert (data.write(b"").errno, data.write_at(0, 0).errno) == ("EFAULT", "EFAULT")
    assert ue.tracefs.records() == []


@case(doc="trace_events_user.c@rfc-v1: says nothing of errors")
@variants(("5", 5, "EFAULT"), ("0", 0, ""), ("negative", -1, "EINVAL"))
def test_write_position(ue: UserEvents, offset: int, errno: str) -> None:
    """A nonzero position is EFAULT, for one buffer and for several."""
    data = enabled_data(ue)
    assert data.pwrite(b"a", offset).errno == errno
    assert data.pwritev([b"b", b"c"], offset).errno == errno
    assert ue.tracefs.records() == ([] if errno else ["61", "62", "63"])


@case(doc="trace_events_user.c@rfc-v1: says nothing of errors", level="detail", isolation="none")
@spec("fs/read_write.c:vfs_write; trace_events_user.c:user_events_write")
@variants(
    # No data, and no event to write.
    ("empty-unbound", os.O_RDWR, 0, 0, 0, "EFAULT"),
    ("position-unbound", os.O_RDWR, 0, 1, 1, "EFAULT"),
    ("kernel-half-unbound", os.O_RDWR, KERNEL_HALF, 1, 0, "EFAULT"),
    ("null-unbound", os.O_RDWR, 0, 1, 0, "ENOENT"),
    ("empty-read-only", os.O_RDONLY, 0, 0, 0, "EBADF"),
    ("kernel-half-read-only", os.O_RDONLY, KERNEL_HALF, 1, 0, "EBADF"),
    ("negative-read-only", os.O_RDONLY, 0, 0, -1, "EINVAL"),
)
def test_write_order(
    ue: UserEvents, opened: int, address: int, count: int, offset: int, errno: str
) -> None:
    """Order of checks: position and permission, the data, the event."""
    assert ue.open_data(opened).pwrite_at(address, count, offset).errno == errno


@case(spec="fs/read_write.c:do_loop_readv_writev", level="detail")
@doc("trace_events_user.c@rfc-v1: has no write_iter")
def test_writev_records(ue: UserEvents) -> None:
    """Every segment of writev(2) is a separate record, and the lengths are added up."""
    data = enabled_data(ue, ";u32\ta\t4\t0;u32\tb\t4\t4")
    assert data.writev([b"one", b"fourfour", b"x"]).value == 12
    assert ue.tracefs.records() == ["6f 6e 65", "66 6f 75 72 66 6f 75 72", "78"]


@case(spec="fs/read_write.c:do_loop_readv_writev; lib/iov_iter.c:iov_iter_advance", level="detail")
@doc("trace_events_user.c@rfc-v1: says nothing of errors")
@variants(
    ("first", [b"", b"a"], "EFAULT", -1, []),
    ("middle", [b"a", b"", b"b"], "", 2, ["61", "62"]),
    ("last", [b"a", b""], "", 1, ["61"]),
    ("all", [b"", b""], "", 0, []),
    ("none", [], "", 0, []),
)
def test_writev_empty(
    ue: UserEvents, parts: list[bytes], errno: str, value: int, records: list[str]
) -> None:
    """An empty segment is EFAULT as the first, and skipped after another."""
    seen = enabled_data(ue).writev(parts)
    assert (seen.errno, seen.value) == (errno, value)
    assert ue.tracefs.records() == records


@case(spec="fs/read_write.c:do_loop_readv_writev", level="detail", isolation="none")
@doc("trace_events_user.c@rfc-v1: says nothing of errors")
@variants(("none", [], ""), ("empty", [b"", b""], ""), ("first-empty", [b"", b"a"], "EFAULT"))
def test_writev_unbound(ue: UserEvents, parts: list[bytes], errno: str) -> None:
    """Only empty segments succeed even without an event; an empty one before data does not."""
    assert ue.open_data().writev(parts).errno == errno


@case(doc="a program writes if the byte is not zero")
def test_write_unheard(ue: UserEvents) -> None:
    """Writing a disabled event returns the length, before and after it was enabled."""
    data = bound_data(ue, ue.name())
    assert data.write(b"abc").value == 3
    ue.tracefs.enable(ue.name())
    assert data.write(b"d").value == 1
    ue.tracefs.disable(ue.name())
    assert (data.write(b"efg").value, data.writev([b"h", b"i"]).value) == (3, 2)
    assert ue.tracefs.records() == ["64"]


@case(spec="user_events_write; fs/read_write.c:vfs_write", level="detail")
@doc("a program writes if the byte is not zero")
@variants(("null", 0, ""), ("unmapped", 0x1000_0000, ""), ("kernel-half", KERNEL_HALF, "EFAULT"))
def test_write_unheard_unread(ue: UserEvents, address: int, errno: str) -> None:
    """Data of a disabled event is not read, but must be at a user address."""
    assert bound_data(ue, ue.name()).write_at(address, 8).errno == errno


@case(spec="trace_events.c:trace_event_buffer_reserve", level="detail", isolation="global")
def test_write_untraced(ue: UserEvents) -> None:
    """While tracing is off a write returns its length and leaves no record, readable or not."""
    data = enabled_data(ue)
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "0\n")
    assert data.write(b"abc").value == 3
    # There is no record to fill in.
    assert data.write_at(0, 8).value == 8
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "1\n")
    assert data.write(b"d").value == 1
    assert ue.tracefs.records() == ["64"]


@case(spec="user_event_ftrace: no commit", level="detail", isolation="fatal")
@doc("the payload is written to the descriptor that registered; silent of what cannot be read")
@variants({"null": 0, "unmapped": 0x1000_0000})
def test_write_unreadable(ue: UserEvents, address: int) -> None:
    """An unreadable payload counts as written, and hides all records after it."""
    ue.process.pin(0)
    data = enabled_data(ue)
    assert (data.write(b"a").value, data.write_at(address, 8).value) == (1, 8)
    assert data.write(b"b").value == 1
    assert bound_data(ue, ue.name()).write(b"c").value == 1
    assert ue.tracefs.records() == ["61"]


@case(spec="ring_buffer.c:rb_reserve_next_event", level="detail")
@doc("trace_events_user.c@rfc-v1: names no limit")
@variants((4056, 3), (4065, 2), (100000, 2))
def test_write_longest(ue: UserEvents, length: int, records: int) -> None:
    """A payload longer than a page of the ring buffer is lost silently."""
    data = enabled_data(ue)
    assert (data.write(b"a").value, data.write(b"x" * length).value) == (1, length)
    assert data.write(b"b").value == 1
    assert len(ue.tracefs.records()) == records


@case(spec="ring_buffer.c:rb_reserve_next_event", level="detail", needs="long-record-stops-buffer")
@doc("trace_events_user.c@rfc-v1: names no limit")
def test_write_longest_kept(ue: UserEvents) -> None:
    """The longest payload that is recorded has 4064 bytes."""
    assert enabled_data(ue).write(b"x" * 4064).value == 4064
    assert len(ue.tracefs.records()) == 1
