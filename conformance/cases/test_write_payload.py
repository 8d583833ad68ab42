"""write(): payloads and their limits, unreadable memory, descriptors, order of checks.

What the kernel checks inside of a payload is in test_write_validators.
"""

from __future__ import annotations

import os

from conformance.cases.declare import case, variants
from conformance.sut.files import File
from conformance.sut.mapping import memory_file
from conformance.sut.places import PAGE, SCRATCH
from conformance.sut.tracefs import DATA
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/user_events.rst@v6.12: Writing Data"
CORE = "trace_events_user.c:user_events_write_core"
KERNEL_HALF = 0xFFFF_8000_0000_0000
# write index 0 and a payload of 0x41.
INDEX = b"\0\0\0\0"
RECORD = INDEX + b"\x41\0\0\0"


# Payloads


@case(
    "write.short_payload",
    spec=f"{CORE}: i->count < user->min_size",
    doc=f"{DOC}: the payload holds the fields of the event",
    tier="full",
    profiles="5.18..",
)
@variants(
    "fields, payload, missing",
    {
        "u8.0": (" u8 a", b"", b"\1"),
        "u32.3": (" u32 a", bytes(3), b"\0"),
        "two.11": (" u32 a; u64 b", bytes(11), b"\0"),
        "char20.19": (" char[20] a", bytes(19), b"\0"),
        "data_loc.3": (" __data_loc u8[] a", bytes(3), b"\0"),
        "rel_loc.3": (" __rel_loc u8[] a", bytes(3), b"\0"),
        "struct20.19": (" struct s a 20", bytes(19), b"\0"),
    },
)
def test_short_payload(ue: UserEvents, fields: str, payload: bytes, missing: bytes) -> None:
    """A payload shorter than the fields of its event is EINVAL; the last byte mends it."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    # At first what was short was recorded as it came.
    errno = ue.dated("payload_size_checked", since="EINVAL", before="")
    assert data.write_event(0, payload).errno == errno
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, payload).errno == errno
    assert data.writev([INDEX, payload]).errno == errno
    assert data.write_event(0, payload + missing).ok
    dumps = [payload.hex(" "), payload.hex(" "), (payload + missing).hex(" ")]
    if ue.dated("payload_size_checked", since=True, before=False):
        assert len(ue.tracefs.records()) == 1
    else:
        assert ue.tracefs.records() == dumps


@case(
    "write.longer_payload",
    spec="trace_events_user.c:user_event_ftrace copies i->count bytes",
    doc=f"{DOC}: silent about bytes behind the last field",
    profiles="5.18..",
)
@variants(
    "extra, returned, dump",
    {
        "1": (1, 9, "41 00 00 00 ff"),
        # A dump of more than a page is left out.
        "3000": (3000, 3008, ""),
    },
)
def test_longer_payload(ue: UserEvents, extra: int, returned: int, dump: str) -> None:
    """Bytes behind the last field are taken and counted; the fields read the same."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD + b"\xff" * extra).value == returned
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump=dump)]


@case(
    "write.longest_record",
    spec="ring_buffer.c:rb_reserve_next_event, BUF_MAX_DATA_SIZE of a sub-buffer",
    doc=f"{DOC}: silent about the longest payload",
    needs=("long_records_kept",),
    profiles="5.18..",
)
@variants(
    "length, returned, records",
    {
        "4064": (4064, 4068, 1),
        "4065": (4065, 4069, 0),
        "65536": (65536, 65540, 0),
        # One more than perf has room for, which does not listen.
        "8185": (8185, 8189, 0),
    },
)
def test_longest_record(ue: UserEvents, length: int, returned: int, records: int) -> None:
    """4064 bytes of payload are recorded; more are dropped, and the write succeeds."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD.ljust(4 + length, b"\0")).value == returned
    # A dump of more than a page is left out, the line of its record is there.
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="")] * records


@case(
    "write.dropped_is_not_validated",
    spec="trace_events_user.c:user_event_ftrace returns before it validates",
    doc=f"{DOC}: silent about the longest payload",
    needs=("long_records_kept",),
    profiles="5.18..",
)
def test_dropped_is_not_validated(ue: UserEvents) -> None:
    """A payload too long to be recorded succeeds although its contents are invalid."""
    data = ue.open_data()
    data.register(ue.name() + " __data_loc char[] s")
    ue.tracefs.enable(ue.name())
    bad = INDEX + b"\xff\xff\xff\xff"
    errno = ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert data.write(bad.ljust(4 + 4064, b"\0")).errno == errno
    assert data.write(bad.ljust(4 + 4065, b"\0")).value == 4069
    # A dump of more than a page is left out, the line of its record is there.
    shown = ue.dated("dynamic_fields_validated", since=[], before=[""])
    assert ue.tracefs.records() == shown


@case(
    "write.no_fields",
    spec="trace_events_user.c:user_event_ftrace: i->count 0 needs no copy",
    doc=f"{DOC}: an event without fields has no payload",
    profiles="5.18..",
)
@variants(
    "parts, returned, dumps",
    {
        "index": ([b"\0\0\0\0"], 4, []),
        "index_and_empty": ([b"\0\0\0\0", b""], 4, []),
        "extra_byte": ([b"\0\0\0\0", b"x"], 5, ["78"]),
        "extra_words": ([b"\0\0\0\0", b"12345678"], 12, ["31 32 33 34 35 36 37 38"]),
    },
)
def test_no_fields(ue: UserEvents, parts: list[bytes], returned: int, dumps: list[str]) -> None:
    """An event without fields needs no byte behind its index, before 6.5 one, and takes more."""
    data = ue.open_data()
    data.register(ue.name())
    ue.tracefs.enable(ue.name())
    # Copying no byte at all was taken for a failure.
    older = returned if dumps else -1
    assert data.writev(parts).value == ue.dated("empty_payload", since=returned, before=older)
    text = [f"{ue.name()}:No fields found"]
    shown = ue.dated("empty_payload", since=text, before=text if dumps else [])
    dumped = ue.dated("empty_payload", since=dumps or [""], before=dumps)
    assert ue.tracefs.records() == ue.dated("remote_enable", since=shown, before=dumped)


# Memory that cannot be read


@case(
    "write.unreadable_payload",
    spec=f"{CORE}: fault_in_iov_iter_readable after the test for listeners",
    doc=f"{DOC}: silent about payloads that cannot be read",
    tier="full",
    profiles="5.18..",
)
@variants("readable, dump", {"none": (0, ""), "half": (2, "00 00")})
def test_unreadable_payload(ue: UserEvents, readable: int, dump: str) -> None:
    """A payload that cannot be read is EFAULT, unless nobody listens: then it is not looked at."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    address = ue.process.map() + PAGE - 4 - readable
    ue.process.store(address, bytes(4 + readable))
    unheard = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_at(address, 8).errno == unheard
    ue.tracefs.enable(ue.name())
    # At first as much was recorded as could be read.
    returned = ue.dated("unreadable_payload_refused", since=-1, before=8)
    errno = ue.dated("unreadable_payload_refused", since="EFAULT", before="")
    written = data.write_at(address, 8)
    assert (written.value, written.errno) == (returned, errno)
    assert data.writev_at([(address, 4 + readable), (0, 4 - readable)]).errno == errno
    dumps = ue.dated("unreadable_payload_refused", since=[], before=[dump, dump])
    assert ue.tracefs.records() == dumps


@case(
    "write.unreadable_index",
    spec=f"{CORE}: copy_from_iter",
    doc=f"{DOC}: silent about data that cannot be read",
    tier="full",
    profiles="5.18..",
)
@variants("readable", {"none": 0, "one": 1, "three": 3})
def test_unreadable_index(ue: UserEvents, readable: int) -> None:
    """An index that cannot be read whole is EFAULT, whether anybody listens or not."""
    data = ue.open_data()
    data.register(ue.name())
    address = ue.process.map() + PAGE - readable
    assert data.write_at(address, 4).errno == "EFAULT"
    ue.tracefs.enable(ue.name())
    assert data.write_at(address, 4).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(
    "write.protected_memory",
    spec=CORE,
    doc=f"{DOC}: silent about memory protection",
    tier="full",
    profiles="5.18..",
)
def test_protected_memory(ue: UserEvents) -> None:
    """Index and payload need to be readable, not writable; PROT_NONE is EFAULT."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    page = ue.process.map()
    ue.process.store(page, RECORD)
    ue.tracefs.enable(ue.name())
    ue.process.protect(page, 1)
    assert data.write_at(page, 8).value == 8
    ue.process.protect(page, 0)
    assert data.write_at(page, 8).errno == "EFAULT"
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]


@case(
    "write.untouched_memory",
    spec=f"{CORE}: fault_in_iov_iter_readable",
    doc=f"{DOC}: silent about pages that are not resident",
    profiles="5.18..",
)
def test_untouched_memory(ue: UserEvents) -> None:
    """Index and payload from pages that were never touched read as zero and are recorded."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a; u32 b")
    pages = ue.process.map(2)
    ue.tracefs.enable(ue.name())
    assert data.write_at(pages + PAGE - 8, 12).value == 12
    assert ue.tracefs.records() == [
        ue.line("a=0x0 (0)", "b=0x0 (0)", dump="00 00 00 00 00 00 00 00")
    ]


@case(
    "write.untouched_segment",
    spec=f"{CORE}: fault_in_iov_iter_readable",
    doc=f"{DOC}: silent about pages that are not resident",
    profiles="5.18..",
)
def test_untouched_segment(ue: UserEvents) -> None:
    """A later segment is recorded from a page of a file that this mapping never touched."""
    data, file = ue.open_data(), memory_file(ue.process)
    data.register(ue.name() + " u32 a; u32 b")
    ue.process.store(file.map(), b"\x08\0\0\0")
    near, far = ue.process.place(b"\0\0\0\0\7\0\0\0"), file.map()
    ue.tracefs.enable(ue.name())
    assert data.writev_at([(near, 8), (far, 4)]).value == 12
    line = ue.line("a=0x7 (7)", "b=0x8 (8)", dump="07 00 00 00 08 00 00 00")
    assert ue.tracefs.records() == [line]


# Descriptors and positions


@case(
    "write.no_position",
    spec="trace_events_user.c:user_data_fops; fs/read_write.c:vfs_llseek",
    doc=f"{DOC}: the file is for ioctl and write",
    profiles="5.18..",
)
def test_no_position(ue: UserEvents) -> None:
    """The data file has no position to be set, ESPIPE, and nothing to be read, EINVAL."""
    file = File(ue.process, DATA, os.O_RDWR)
    assert file.lseek(0).errno == "ESPIPE"
    assert file.lseek(0, os.SEEK_END).errno == "ESPIPE"
    assert file.read(4).errno == "EINVAL"


@case(
    "write.read_only_descriptor",
    spec="fs/read_write.c:vfs_write, do_iter_write: FMODE_WRITE",
    doc=f"{DOC}: events are written with write() or writev() on the descriptor",
    tier="full",
    profiles="5.18..",
)
def test_read_only_descriptor(ue: UserEvents) -> None:
    """A descriptor opened for reading registers events and writes none: EBADF."""
    data = ue.open_data(os.O_RDONLY)
    assert data.register(ue.name() + " u32 a").value == 0
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD).errno == "EBADF"
    assert data.writev([INDEX, b"\1\0\0\0"]).errno == "EBADF"
    assert data.writev([]).errno == "EBADF"
    assert ue.tracefs.records() == []


@case(
    "write.write_only_descriptor",
    spec="trace_events_user.c:user_data_fops",
    doc=f"{DOC}: the descriptor that registered an event writes it",
    profiles="5.18..",
)
def test_write_only_descriptor(ue: UserEvents) -> None:
    """A descriptor opened for writing alone registers and writes."""
    data = ue.open_data(os.O_WRONLY)
    assert data.register(ue.name() + " u32 a").value == 0
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]


@case(
    "write.pwrite_position",
    spec="trace_events_user.c:user_events_write: *ppos != 0",
    doc=f"{DOC}: names write() and writev() only",
    profiles="5.18..",
)
@variants(
    "offset, errno",
    {
        "0": (0, ""),
        "1": (1, "EFAULT"),
        "8": (8, "EFAULT"),
        "2_to_40": (1 << 40, "EFAULT"),
        "minus_1": (-1, "EINVAL"),
    },
)
def test_pwrite_position(ue: UserEvents, offset: int, errno: str) -> None:
    """pwrite works at offset 0 alone."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert data.pwrite(RECORD, offset).errno == errno
    assert len(ue.tracefs.records()) == (1 if errno == "" else 0)


@case(
    "write.pwritev_position",
    spec="trace_events_user.c:user_events_write_iter looks at no position",
    doc=f"{DOC}: names write() and writev() only",
    profiles="5.18..",
)
@variants(
    "offset, errno",
    {
        "0": (0, ""),
        "1": (1, ""),
        "8": (8, ""),
        "2_to_40": (1 << 40, ""),
        "minus_2": (-2, "EINVAL"),
    },
)
def test_pwritev_position(ue: UserEvents, offset: int, errno: str) -> None:
    """pwritev works at any offset that is not negative."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert data.pwritev([INDEX, b"\1\0\0\0"], offset).errno == errno
    assert len(ue.tracefs.records()) == (1 if errno == "" else 0)


@case(
    "write.position_stays",
    spec="trace_events_user.c:user_events_write does not advance *ppos",
    doc=f"{DOC}: the descriptor takes one entry after the other",
    tier="full",
    profiles="5.18..",
)
def test_position_stays(ue: UserEvents) -> None:
    """Writing moves no file position: a third write succeeds like the first."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert [data.write(RECORD).value for _ in range(3)] == [8, 8, 8]
    assert data.pwrite(RECORD, 8).errno == "EFAULT"
    assert len(ue.tracefs.records()) == 3


@case(
    "write.iovec_limits",
    spec="lib/iov_iter.c:iovec_from_user, copy_iovec_from_user",
    doc=f"{DOC}: silent; writev(2) has limits of its own",
    tier="full",
    profiles="5.18..",
)
def test_iovec_limits(ue: UserEvents) -> None:
    """1024 iovecs are taken; 1025, or one of negative length, are EINVAL."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    ue.process.store(SCRATCH + PAGE * 40, RECORD)
    whole, empty = (SCRATCH + PAGE * 40, 8), (SCRATCH, 0)
    assert data.writev_at([empty] * 1023 + [whole]).value == 8
    assert data.writev_at([empty] * 1024 + [whole]).errno == "EINVAL"
    assert data.writev_at([whole, (SCRATCH, 1 << 63)]).errno == "EINVAL"
    assert len(ue.tracefs.records()) == 1


# Two violations at once


@case(
    "write.order_descriptor_first",
    spec="fs/read_write.c:ksys_write, vfs_write before user_events_write",
    doc=f"{DOC}: silent about the order of errors",
    profiles="5.18..",
)
def test_order_descriptor_first(ue: UserEvents) -> None:
    """A read-only descriptor is EBADF before a bad buffer, position or index is seen."""
    data = ue.open_data(os.O_RDONLY)
    assert data.write_at(KERNEL_HALF, 8).errno == "EBADF"
    assert data.write(b"\0").errno == "EBADF"
    assert data.write_event(-1).errno == "EBADF"
    assert data.pwrite(RECORD, 8).errno == "EBADF"
    assert data.pwrite(RECORD, -1).errno == "EINVAL"


@case(
    "write.order_position_before_index",
    spec="trace_events_user.c:user_events_write",
    doc=f"{DOC}: silent about the order of errors",
    needs=("negative_index_refused",),
    profiles="5.18..",
)
@variants("index", {"negative": -1, "unknown": 1})
def test_order_position_before_index(ue: UserEvents, index: int) -> None:
    """pwrite at an offset is EFAULT before the index is looked at."""
    data = ue.open_data()
    data.register(ue.name())
    packed = index.to_bytes(4, "little", signed=True)
    assert data.pwrite(packed, 4).errno == "EFAULT"
    # Where a negative index is not refused, the kernel reads out of bounds.
    if index >= 0 or ue.profile.has("negative_index_refused"):
        assert data.pwrite(packed, 0).errno == ("EINVAL" if index == -1 else "ENOENT")


@case(
    "write.order_address_before_index",
    spec="fs/read_write.c:vfs_write: access_ok; lib/iov_iter.c:__import_iovec",
    doc=f"{DOC}: silent about the order of errors",
    needs=("negative_index_refused",),
    profiles="5.18..",
)
def test_order_address_before_index(ue: UserEvents) -> None:
    """A payload iovec in the kernel's half is EFAULT before a bad index is looked at."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    address = SCRATCH + PAGE * 40
    ue.process.store(address, b"\1\0\0\0")
    assert data.writev_at([(address, 4), (KERNEL_HALF, 4)]).errno == "EFAULT"
    assert data.writev_at([(address, 4), (PAGE, 4)]).errno == "ENOENT"


@case(
    "write.order_index_before_payload",
    spec=CORE,
    doc=f"{DOC}: silent about the order of errors",
    tier="full",
    needs=("negative_index_refused",),
    profiles="5.18..",
)
@variants("index, errno", {"negative": (-1, "EINVAL"), "unknown": (1, "ENOENT")})
def test_order_index_before_payload(ue: UserEvents, index: int, errno: str) -> None:
    """A bad index is reported before a payload that cannot be read."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    address = ue.process.map() + PAGE - 4
    ue.process.store(address, index.to_bytes(4, "little", signed=True))
    assert data.write_at(address, 8).errno == errno
    ue.process.store(address, INDEX)
    unreadable = ue.dated("unreadable_payload_refused", since="EFAULT", before="")
    assert data.write_at(address, 8).errno == unreadable


@case(
    "write.order_length_before_payload",
    spec=CORE,
    doc=f"{DOC}: silent about the order of errors",
    tier="full",
    profiles="5.18..",
)
def test_order_length_before_payload(ue: UserEvents) -> None:
    """A short payload is EINVAL before it matters that it cannot be read."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    address = ue.process.map() + PAGE - 4
    ue.process.store(address, INDEX)
    unreadable = ue.dated("unreadable_payload_refused", since="EFAULT", before="")
    short = ue.dated("payload_size_checked", since="EINVAL", before=unreadable)
    assert data.write_at(address, 7).errno == short
    assert data.write_at(address, 8).errno == unreadable
