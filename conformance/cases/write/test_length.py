"""write(): length of a payload and how much of it is recorded, and large numbers."""

import struct

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.writing import INDEX, RECORD
from conformance.client.addresses import PAGE
from conformance.client.caller import Word
from conformance.ops import Discard, Write

DOC = "Writing Data: silent about the longest payload"
case = surface("write", doc=DOC, level="behaviour", tier="full")


@case(spec="user_events_write_core: i->count < user->min_size", level="contract")
@doc("Writing Data: for an int payload the data have to be 8 bytes, index and payload")
@variants(
    ("u8.0", "u8 a", b"", b"\1"),
    ("u32.3", "u32 a", bytes(3), b"\0"),
    ("two.11", "u32 a; u64 b", bytes(11), b"\0"),
    ("char20.19", "char[20] a", bytes(19), b"\0"),
    ("data_loc.3", "__data_loc u8[] a", bytes(3), b"\0"),
    ("rel_loc.3", "__rel_loc u8[] a", bytes(3), b"\0"),
    ("struct20.19", "struct s a 20", bytes(19), b"\0"),
)
def test_short_payload(ue: UserEvents, fields: str, payload: bytes, missing: bytes) -> None:
    """A payload shorter than the event's fields is EINVAL; with the last byte it is recorded."""
    event = ue.event(fields)
    # The first kernels recorded a short payload unchanged.
    errno = ue.dated("payload_size_checked", since="EINVAL", before="")
    assert event.write(payload).errno == errno
    event.enable()
    assert (event.write(payload).errno, event.data.writev([INDEX, payload]).errno) == (errno, errno)
    assert event.write(payload + missing).ok
    dumps = [payload.hex(" "), payload.hex(" "), (payload + missing).hex(" ")]
    if ue.dated("payload_size_checked", since=True, before=False):
        assert len(ue.tracefs.records()) == 1
    else:
        assert ue.tracefs.records() == dumps


@case(
    level="detail",
    needs="payload_size_checked ebadf_when_disabled",
    tier="quick",
    bug="field-offset-wraps",
)
@spec("user_event_add_field: min_size is that of the last field")
@doc("Writing Data: silent about fields that are larger than what can be written")
def test_least_size_wraps(ue: UserEvents) -> None:
    """Fields whose last one would end within a short payload, as offsets wrap, are EINVAL."""
    data = ue.open_data()
    huge = "struct s a 2147483647; struct s b 2147483647"
    errno = ue.bug("field-offset-wraps", fixed="EINVAL", present="")
    # With the bug the last field ends at 8, 0 and -1 of the payload.
    for name, last in (("e", "struct s c 10"), ("zero", "u16 c"), ("minus", "u8 c")):
        assert data.register(f"{ue.name(name)} {huge}; {last}").errno == errno
    if errno:
        return
    # Disabled: the length is checked first.
    assert data.write_event(0, bytes(7)).errno == "EINVAL"
    assert (data.write_event(0, bytes(8)).errno, data.write_event(1).errno) == ("EBADF", "EBADF")
    # The length is compared without a sign.
    assert (data.write_event(2).errno, data.write_event(2, bytes(64)).errno) == ("EINVAL", "EINVAL")


@case(level="detail", needs="payload_size_checked")
@spec("fs/read_write.c:vfs_write: MAX_RW_COUNT; lib/iov_iter.c:import_iovec")
@doc("Writing Data: silent about writes of 2 GiB")
@variants(
    ("write", (0x80000003,)),
    ("writev", (1 << 40,)),
    ("two_parts", (5, 0x7FFFEFFB)),
    ("two_long_parts", (0x7FFFEFFF, 0x7FFFEFFF)),
)
def test_longest_write(ue: UserEvents, lengths: tuple[int, ...]) -> None:
    """A write counts up to 2 GiB less a page: a larger event cannot be written."""
    data = ue.register(a="struct s a 2147479548", b="struct s a 2147479549")
    disabled = ue.dated("ebadf_when_disabled", since=(-1, "EBADF"), before=(0x7FFFF000, ""))
    for index, answer in ((0, disabled), (1, (-1, "EINVAL"))):
        at = ue.process.place(bytes([index, 0, 0, 0]))
        if lengths == (0x80000003,):
            seen = data.write_at(at, *lengths)
        else:
            seen = data.writev_at([(at, length) for length in lengths])
        assert (seen.value, seen.errno) == answer


@case(spec="user_event_ftrace copies i->count bytes")
@doc("Writing Data: silent about bytes after the last field")
@variants(
    (1, 9, "41 00 00 00 ff"),
    # A dump of more than a page is left out.
    (3000, 3008, ""),
)
def test_longer_payload(ue: UserEvents, extra: int, returned: int, dump: str) -> None:
    """Bytes after the last field are accepted and counted; the fields read the same."""
    assert ue.event("u32 a", enabled=True).data.write(RECORD + b"\xff" * extra).value == returned
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump=dump)]


@case(level="detail", needs="long-record-stops-buffer", tier="quick")
@spec("ring_buffer.c:rb_reserve_next_event, BUF_MAX_DATA_SIZE of a sub-buffer")
@variants(
    (4064, 4068, 1),
    (4065, 4069, 0),
    (65536, 65540, 0),
    # One more than perf has room for, which is not enabled.
    (8185, 8189, 0),
)
def test_longest_record(ue: UserEvents, length: int, returned: int, records: int) -> None:
    """Payloads up to 4064 bytes are recorded; longer ones are dropped, and the write succeeds."""
    data = ue.event("u32 a", enabled=True).data
    assert data.write(RECORD.ljust(4 + length, b"\0")).value == returned
    # A dump of more than a page is left out; the line of its record is there.
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="")] * records


@case(level="detail", needs="long-record-stops-buffer", tier="quick")
@spec("user_event_ftrace returns before it validates")
def test_dropped_is_not_validated(ue: UserEvents) -> None:
    """A payload too long to be recorded succeeds even if it is malformed."""
    data = ue.event("__data_loc char[] s", enabled=True).data
    bad = INDEX + b"\xff\xff\xff\xff"
    errno = ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert data.write(bad.ljust(4 + 4064, b"\0")).errno == errno
    assert data.write(bad.ljust(4 + 4065, b"\0")).value == 4069
    # A dump of more than a page is left out; the line of its record is there.
    assert ue.tracefs.records() == ue.dated("dynamic_fields_validated", since=[], before=[""])


@case(spec="user_event_ftrace: i->count 0 needs no copy", tier="quick")
@doc("Writing Data: the data after the index are the payload; silent about events without fields")
@variants(
    ("index", [b"\0\0\0\0"], 4, []),
    ("index_and_empty", [b"\0\0\0\0", b""], 4, []),
    ("extra_byte", [b"\0\0\0\0", b"x"], 5, ["78"]),
    ("extra_words", [b"\0\0\0\0", b"12345678"], 12, ["31 32 33 34 35 36 37 38"]),
)
def test_no_fields(ue: UserEvents, parts: list[bytes], returned: int, dumps: list[str]) -> None:
    """An event without fields needs no payload, before 6.4 one byte, and accepts more."""
    data = ue.event(enabled=True).data
    # A copy of zero bytes was taken for a failure.
    older = returned if dumps else -1
    assert data.writev(parts).value == ue.dated("empty_payload", since=returned, before=older)
    text = [f"{ue.name()}:No fields found"]
    shown = ue.dated("empty_payload", since=text, before=text if dumps else [])
    dumped = ue.dated("empty_payload", since=dumps or [""], before=dumps)
    assert ue.tracefs.records() == ue.dated("remote_enable", since=shown, before=dumped)


@case(spec="user_events_write_core: refs->events", level="contract")
@doc("Writing Data: the data begin with the write index; the rest is the payload")
def test_index_beyond_a_byte(ue: UserEvents) -> None:
    """A descriptor with 258 events writes each by its own index, and returns it again."""
    data, words = ue.open_data(), ue.process.map()
    indices = [
        data.register(f"{ue.name(f'n{n}')} u8 v", word=Word(ue.process, words + 4 * n)).index
        for n in range(258)
    ]
    assert indices[255:] == [255, 256, 257]
    again = data.register(f"{ue.name('n257')} u8 v", word=Word(ue.process, words + 4 * 258))
    assert again.index == 257
    ue.enable("n257", "n1")
    assert data.write_event(257, b"\7").value == 5
    assert data.write_event(258, b"\7").errno == "ENOENT"
    assert ue.tracefs.records() == [ue.line("v=(7)", dump="07", name="n257")]


@case(needs="unreadable_payload_refused")
@spec("user_events_write_core: fault_in_iov_iter_readable of all that is written")
@doc("Writing Data: silent about pages that are not resident")
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


@case(spec="user_events_write_core: min_size", needs="payload_size_checked")
@doc("Writing Data: the payload is that of the event; silent about one that is too short")
def test_shorter_than_64_kib(ue: UserEvents) -> None:
    """An event of 65540 bytes accepts nothing shorter: EINVAL."""
    assert ue.event("struct large v 65540", enabled=True).write(bytes(100)).errno == "EINVAL"


@case(needs="dynamic_fields_validated")
@doc("include/uapi/linux/user_events.h@v6.12: DYN_LOC(offset, size) is size << 16 | offset;")
@doc("silent about checks")
@spec("user_event_validate: validator->offset")
def test_location_far_behind(ue: UserEvents) -> None:
    """Dynamic data is validated at any offset, past 300 bytes as well."""
    event = ue.event("char[300] a; __rel_loc char[] s", enabled=True)
    text = b"x\0"
    assert event.write(bytes(300) + struct.pack("<HH", 0, 2) + text).value == 310
    assert event.write(bytes(300) + struct.pack("<HH", 0, 3) + text).errno == "EFAULT"
