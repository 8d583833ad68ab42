"""write() and writev() on user_events_data: a write is one record, and needs an enabled event."""

import os
import struct

from conformance import ops
from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.writing import INDEX, RECORD
from conformance.client.addresses import KERNEL_HALF, PAGE, SCRATCH, STRUCT
from conformance.client.files import File
from conformance.client.tracefs import DATA, TRACING_ON

DOC = "Writing Data: names write() and writev() only"
DISABLED = "Status: programs write while the bit is set; silent about a write of a disabled event"
POSITION = "Writing Data: a write is an entry of the event; silent about the file position"
case = surface("write", spec="user_events_write_core", doc=DOC, level="behaviour")


@case(doc="Writing Data: the data are index and payload; silent about the return value")
@variants(
    ("u8", "u8 a", b"\1", 5),
    ("u64", "u64 a", bytes(8), 12),
    ("struct3000", "struct s a 3000", bytes(3000), 3004),
)
def test_returns_all_bytes(ue: UserEvents, fields: str, payload: bytes, returned: int) -> None:
    """A successful write returns the combined length of index and payload."""
    assert ue.event(fields, enabled=True).write(payload).value == returned
    assert len(ue.tracefs.records()) == 1


@case(tier="full")
@doc("Writing Data: a write is an entry of the event; silent about pwrite() and pwritev()")
def test_records_in_order(ue: UserEvents) -> None:
    """Every write is one record, in the order of writing, whatever the system call."""
    data = ue.event("u16 n", enabled=True).data
    data.write(b"\0\0\0\0\1\0")
    data.writev([b"\0\0\0\0", b"\2\0"])
    data.pwrite(b"\0\0\0\0\3\0", 0)
    data.pwritev([b"\0\0\0\0\4\0"], 0)
    assert ue.tracefs.records() == [
        ue.line("n=0x1 (1)", dump="01 00"),
        ue.line("n=0x2 (2)", dump="02 00"),
        ue.line("n=0x3 (3)", dump="03 00"),
        ue.line("n=0x4 (4)", dump="04 00"),
    ]


@case(doc=DISABLED, profiles="6.4..", needs="ebadf_when_disabled", tier="full")
@spec("user_events_write_core: the tracepoint decides, not the word")
def test_word_not_consulted(ue: UserEvents) -> None:
    """The kernel does not read the enable word: clearing or setting it does not affect a write."""
    event = ue.event("u32 a")
    ue.process.store(event.word.address, b"\1\0\0\0")
    assert event.data.write(RECORD).errno == "EBADF"
    event.enable()
    ue.process.store(event.word.address, b"\0\0\0\0")
    assert event.data.write(RECORD).value == 8
    assert ue.tracefs.records() == [f"{ue.name()}: a=0x41 (65)"]


@case(spec="user_events_write_core: tp->key.enabled", doc=DISABLED, tier="full")
@variants({"exact": b"\1\0\0\0", "longer": b"\1\0\0\0more"})
def test_nobody_listens(ue: UserEvents, payload: bytes) -> None:
    """Writing an event that is not enabled, or no longer, is EBADF; before 6.5 it succeeds."""
    event = ue.event("u32 a")
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert (event.write(payload).errno, event.data.writev([INDEX, payload]).errno) == (errno, errno)
    event.enable()
    event.disable()
    assert event.write(payload).errno == errno
    assert ue.tracefs.records() == []


@case(spec="user_events_write_core: each event has a tracepoint of its own", doc=DISABLED)
def test_listener_of_another_event(ue: UserEvents) -> None:
    """A tracer of one event gets no records of another event of the same file."""
    data = ue.register(a="u8 x", b="u8 x")
    ue.tracefs.enable(ue.name("a"))
    written = data.write_event(1, b"\1")
    assert written.errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, b"\1").value == 5
    assert ue.tracefs.records() == [ue.line("x=(1)", name="a", dump="01")]


@case(doc="Writing Data: silent about tracing_on", level="detail", tier="full", isolation="global")
@spec("ring_buffer.c:ring_buffer_lock_reserve; trace_events_user.c:user_event_ftrace")
def test_tracing_off(ue: UserEvents) -> None:
    """With tracing_on 0 a write succeeds, records nothing and validates nothing."""
    data = ue.register(a="u32 a", b="__data_loc char[] s")
    ue.enable("a", "b")
    ue.tracefs.write(TRACING_ON, "0\n")
    assert (data.write(RECORD).value, data.write_event(1, b"\xff\xff\xff\xff").value) == (8, 8)
    ue.tracefs.write(TRACING_ON, "1\n")
    errno = ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert data.write_event(1, b"\xff\xff\xff\xff").errno == errno
    dumps = ue.dated("dynamic_fields_validated", since=[], before=["ff ff ff ff"])
    assert ue.tracefs.records() == dumps


@case(spec="user_events_write_iter", level="contract")
@doc("Writing Data: writev() takes the index in its first vector, the payload in the others")
def test_equals_writev(ue: UserEvents) -> None:
    """The same bytes through write and writev give the same result and the same record."""
    data = ue.event("u32 a; char[4] b", enabled=True).data
    assert data.write(b"\0\0\0\0\7\0\0\0abc\0").value == 12
    assert data.writev([b"\0\0\0\0", b"\7\0\0\0abc\0"]).value == 12
    line = ue.line("a=0x7 (7)", "b=abc", dump="07 00 00 00 61 62 63 00")
    assert ue.tracefs.records() == [line, line]


@case(spec="user_events_write_core, lib/iov_iter.c:copy_from_iter")
@doc("Writing Data: writev() takes the index in its first vector; silent about other divisions")
@variants(
    ("one", [b"\0\0\0\0\x44\x33\x22\x11"]),
    ("index_1_3", [b"\0", b"\0\0\0", b"\x44\x33\x22\x11"]),
    ("index_bytes", [b"\0", b"\0", b"\0", b"\0", b"\x44\x33\x22\x11"]),
    ("all_bytes", [b"\0", b"\0", b"\0", b"\0", b"\x44", b"\x33", b"\x22", b"\x11"]),
    ("empty_first", [b"", b"\0\0\0\0", b"\x44\x33\x22\x11"]),
    ("empty_between", [b"\0\0", b"", b"\0\0", b"", b"\x44\x33\x22\x11"]),
    ("empty_last", [b"\0\0\0\0", b"\x44\x33\x22\x11", b""]),
)
def test_parts(ue: UserEvents, parts: list[bytes]) -> None:
    """Index and payload may be split into iovecs anywhere: it is one record."""
    assert ue.event("u32 a", enabled=True).data.writev(parts).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x11223344 (287454020)", dump="44 33 22 11")]


@case(doc="Writing Data: the data begin with the write index; silent about data without one")
@variants(
    ("one", [b"\0"]), ("one_and_two", [b"\0", b"\0\0"]), ("three_and_empty", [b"\0\0\0", b""])
)
def test_parts_too_short_for_index(ue: UserEvents, parts: list[bytes]) -> None:
    """iovecs of one to three bytes in total are EFAULT."""
    assert ue.event(enabled=True).data.writev(parts).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(spec="fs/read_write.c:do_iter_readv_writev is not reached without a byte", level="detail")
@doc("Writing Data: silent about empty vectors")
@variants({"no_parts": [], "one_empty": [b""], "three_empty": [b"", b"", b""]})
def test_writev_of_nothing(ue: UserEvents, parts: list[bytes]) -> None:
    """writev of zero bytes returns 0, where write is EFAULT."""
    data = ue.open_data()
    assert data.writev(parts).value == 0
    assert data.write(b"").errno == "EFAULT"


@case(spec="lib/iov_iter.c:iovec_from_user, copy_iovec_from_user", level="detail", tier="full")
@doc("Writing Data: silent; writev(2) has limits of its own")
def test_iovec_limits(ue: UserEvents) -> None:
    """1024 iovecs are accepted; 1025, -1, or one of negative length, are EINVAL."""
    data = ue.event("u32 a", enabled=True).data
    ue.process.store(SCRATCH + PAGE * 40, RECORD)
    whole, empty = (SCRATCH + PAGE * 40, 8), (SCRATCH, 0)
    assert data.writev_at([empty] * 1023 + [whole]).value == 8
    assert data.writev_at([empty] * 1024 + [whole]).errno == "EINVAL"
    assert ue.process.run(ops.Writev(ue.process.actor, data.slot, STRUCT, -1)).errno == "EINVAL"
    assert data.writev_at([whole, (SCRATCH, 1 << 63)]).errno == "EINVAL"
    assert data.writev_at([whole, (SCRATCH, (1 << 63) - 1)]).errno == "EFAULT"
    assert len(ue.tracefs.records()) == 1


@case(spec="lib/iov_iter.c:import_iovec: unsigned nr_segs", level="detail", tier="full")
@doc("Writing Data: silent; writev(2) takes an int")
def test_iovec_count(ue: UserEvents) -> None:
    """The number of iovecs has 32 bits; without any, their address does not matter."""
    data = ue.event("u32 a", enabled=True).data

    def count(address: int, number: int) -> int:
        return ue.process.run(ops.Writev(ue.process.actor, data.slot, address, number)).value

    vector = ue.process.place(struct.pack("<QQ", ue.process.place(RECORD), 8))
    assert (count(KERNEL_HALF, 0), count(KERNEL_HALF, 1 << 32)) == (0, 0)
    assert count(vector, (1 << 32) + 1) == 8
    assert len(ue.tracefs.records()) == 1


@case(spec="lib/iov_iter.c:import_ubuf", level="detail", tier="full")
@doc("Writing Data: silent; writev(2) has limits of its own")
def test_one_long_iovec(ue: UserEvents) -> None:
    """Of a single iovec the first 2 GiB have to be in user space; before 6.4, all of it."""
    data, at = ue.open_data(), ue.process.place(INDEX)
    errno = ue.dated("iovecs_walked", since="ENOENT", before="EFAULT")
    assert data.writev_at([(at, (1 << 63) - 1)]).errno == errno
    assert data.writev_at([(at, (1 << 63) - 1), (at, 0)]).errno == "EFAULT"


@case(spec="user_data_fops; fs/read_write.c:ksys_lseek, vfs_llseek", level="detail")
@doc("Writing Data: names write() and writev() only")
def test_no_position(ue: UserEvents) -> None:
    """The data file cannot be seeked, ESPIPE, or read, EINVAL; unknown origins are EINVAL."""
    file = File(ue.process, DATA, os.O_RDWR)
    assert (file.lseek(0).errno, file.lseek(0, os.SEEK_END).errno) == ("ESPIPE", "ESPIPE")
    assert (file.lseek(0, 4).errno, file.lseek(0, 5).errno) == ("ESPIPE", "EINVAL")
    assert (file.lseek(0, -1).errno, file.read(4).errno) == ("EINVAL", "EINVAL")


@case(spec="fs/read_write.c:vfs_write, vfs_writev: FMODE_WRITE", level="detail", tier="full")
@doc("Writing Data: events are written with write() or writev() on the descriptor")
def test_read_only_descriptor(ue: UserEvents) -> None:
    """A read-only descriptor registers events and cannot write them: EBADF."""
    data = ue.open_data(os.O_RDONLY)
    assert data.register(ue.name() + " u32 a").value == 0
    ue.tracefs.enable(ue.name())
    assert (data.write(RECORD).errno, data.writev([INDEX, b"\1\0\0\0"]).errno) == ("EBADF", "EBADF")
    assert data.writev([]).errno == "EBADF"
    assert ue.tracefs.records() == []


@case(spec="include/linux/fs.h:OPEN_FMODE", level="detail", tier="full")
@doc("Writing Data: events are written with write() or writev() on the descriptor")
def test_neither_read_nor_write(ue: UserEvents) -> None:
    """A descriptor opened with O_ACCMODE registers events and can be neither written nor read."""
    file = File(ue.process, DATA, os.O_ACCMODE)
    assert file.opened.errno == ""
    data = ue.open_data(os.O_ACCMODE)
    assert data.register(ue.name() + " u32 a").value == 0
    ue.tracefs.enable(ue.name())
    assert (data.write(RECORD).errno, data.writev([INDEX, b"\1\0\0\0"]).errno) == ("EBADF", "EBADF")
    assert file.read(4).errno == "EBADF"
    assert ue.tracefs.records() == []


@case(spec="user_data_fops")
@doc("Writing Data: the descriptor that registered an event writes it; silent about open modes")
def test_write_only_descriptor(ue: UserEvents) -> None:
    """A write-only descriptor registers and writes."""
    data = ue.open_data(os.O_WRONLY)
    assert data.register(ue.name() + " u32 a").value == 0
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]


@case(spec="user_events_write: *ppos != 0", doc=POSITION)
@variants(
    ("0", 0, ""),
    ("1", 1, "EFAULT"),
    ("8", 8, "EFAULT"),
    ("2_to_40", 1 << 40, "EFAULT"),
    ("last", (1 << 63) - 9, "EFAULT"),
    ("behind_last", (1 << 63) - 8, "EINVAL"),
    ("minus_1", -1, "EINVAL"),
)
def test_pwrite_position(ue: UserEvents, offset: int, errno: str) -> None:
    """pwrite works at offset 0 only."""
    assert ue.event("u32 a", enabled=True).data.pwrite(RECORD, offset).errno == errno
    assert len(ue.tracefs.records()) == (1 if errno == "" else 0)


@case(spec="user_events_write_iter looks at no position", doc=POSITION)
@variants(
    ("8", 8, ""),
    ("0", 0, ""),
    ("1", 1, ""),
    ("2_to_40", 1 << 40, ""),
    ("minus_2", -2, "EINVAL"),
    ("last", (1 << 63) - 9, ""),
    ("behind_last", (1 << 63) - 8, "EINVAL"),
)
def test_pwritev_position(ue: UserEvents, offset: int, errno: str) -> None:
    """pwritev works at any nonnegative offset, as long as the data end at one."""
    assert ue.event("u32 a", enabled=True).data.pwritev([INDEX, b"\1\0\0\0"], offset).errno == errno
    assert len(ue.tracefs.records()) == (1 if errno == "" else 0)


@case(spec="user_events_write does not advance *ppos", doc=POSITION, tier="full")
def test_position_stays(ue: UserEvents) -> None:
    """Writing does not move the file position: a third write succeeds like the first."""
    data = ue.event("u32 a", enabled=True).data
    assert [data.write(RECORD).value for _ in range(3)] == [8, 8, 8]
    assert data.pwrite(RECORD, 8).errno == "EFAULT"
    assert len(ue.tracefs.records()) == 3
