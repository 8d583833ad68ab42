"""Writes through io_uring: the same checks and records as write(2).

Both kinds of submission end in the data file's write_iter.  io_uring skips the checks that write(2)
makes before it: the position, and whether there is anything to write.
"""

import os
import struct

from conformance.cases.case import UserEvents, doc, spec, surface, variants

SPEC = "user_events_write_core"
DOC = "Writing Data: write() or writev() of the data file; silent about io_uring"
case = surface("uring", SPEC, DOC, level="behaviour", tier="full", facilities="io_uring")


@case(spec="user_events_write_iter, user_events_write_core")
@variants({"write": False, "writev": True})
def test_recorded(ue: UserEvents, vector: bool) -> None:
    """A submission is recorded once, and its completion has the full count, index included."""
    data = ue.event("u16 a", enabled=True).data
    parts = (b"\0\0\0\0", b"\1\0")
    seen = data.submitv(parts) if vector else data.submit(b"".join(parts))
    assert (seen.value, seen.errno) == (6, "")
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]


@case(
    spec="user_events_write_iter, user_events_write_core",
    needs="dynamic_fields_validated",
    tier="quick",
)
def test_registered_buffer(ue: UserEvents) -> None:
    """A submission from a registered buffer, which the kernel reads by its pages, is recorded."""
    data = ue.event("u8 n; __rel_loc char[] a", enabled=True).data
    assert data.submit_registered(b"\0\0\0\0\1\0\0\3\0hi\0").value == 12
    assert data.submit_registered(b"\1\0\0\0").errno == "ENOENT"
    assert data.submit_registered(b"\0\0\0\0\1\0\0\2\0hi").errno == "EFAULT"
    assert ue.tracefs.records() == [ue.line("n=(1)", "a=hi", dump="01 00 00 03 00 68 69 00")]


@case(spec="user_events_write_core")
@variants(
    ("index", b"\1\0\0\0\1\0", "ENOENT"),
    ("index_cut_off", b"\0\0\0", "EFAULT"),
    ("nothing", b"", "EFAULT"),
)
def test_refused(ue: UserEvents, raw: bytes, errno: str) -> None:
    """A write that write(2) rejects completes with the same error."""
    data = ue.event("u16 a", enabled=True).data
    assert (data.submit(raw).errno, data.write(raw).errno) == (errno, errno)
    assert ue.tracefs.records() == []


@case(needs="payload_size_checked")
def test_short_payload(ue: UserEvents) -> None:
    """A payload shorter than the fields is EINVAL."""
    data = ue.event("u16 a", enabled=True).data
    assert data.submit(b"\0\0\0\0\1").errno == "EINVAL"
    assert data.submitv((b"\0\0", b"\0\0\1")).errno == "EINVAL"
    assert ue.tracefs.records() == []


@case(needs="negative_index_refused")
def test_negative_index(ue: UserEvents) -> None:
    """A negative index is EINVAL."""
    assert ue.event("u16 a", enabled=True).data.submit(b"\xff\xff\xff\xff\1\0").errno == "EINVAL"
    assert ue.tracefs.records() == []


@case
def test_nobody_listens(ue: UserEvents) -> None:
    """Writing a disabled event fails with EBADF; before 6.5 it succeeds."""
    seen = ue.event("u16 a").data.submit(b"\0\0\0\0\1\0")
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert (seen.value, seen.errno) == (ue.dated("ebadf_when_disabled", since=-1, before=6), errno)


@case(spec="user_event_validate", needs="dynamic_fields_validated")
def test_validated(ue: UserEvents) -> None:
    """Dynamic data is validated: a string without NUL is rejected, one with it recorded."""
    data = ue.event("u8 n; __rel_loc char[] a", enabled=True).data
    assert data.submit(b"\0\0\0\0\1\0\0\2\0hi").errno == "EFAULT"
    assert data.submit(b"\0\0\0\0\1\0\0\3\0hi\0").value == 12
    assert ue.tracefs.records() == [ue.line("n=(1)", "a=hi", dump="01 00 00 03 00 68 69 00")]


@case(spec="user_events_write_core: fault_in_iov_iter_readable", needs="unreadable_payload_refused")
@variants({"index_only": 4, "part_of_the_payload": 5, "nothing": 0})
def test_unreadable(ue: UserEvents, readable: int) -> None:
    """Memory that ends within the payload or the index is EFAULT."""
    data = ue.event("u16 a", enabled=True).data
    page = ue.process.map()
    ue.process.store(page + 4088, bytes(8))
    assert data.submit_at(page + 4096 - readable, 6).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(spec="lib/iov_iter.c:import_ubuf, import_iovec", level="detail")
@variants({"write": False, "writev": True})
def test_kernel_address(ue: UserEvents, vector: bool) -> None:
    """A kernel address is EFAULT."""
    data = ue.event("u16 a", enabled=True).data
    if vector:
        segments = ue.process.place(struct.pack("<QQ", 0xFFFF_8880_0000_0000, 6))
        seen = data.submit_at(segments, 1, vector=True)
    else:
        seen = data.submit_at(0xFFFF_8880_0000_0000, 6)
    assert seen.errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(level="detail", spec="rw.c:io_write; trace_events_user.c:user_events_write_iter: no position")
@variants(
    ("behind_the_start", 5, 6, ""),
    ("where_the_file_is", -1, 6, ""),
    ("far", 1 << 40, 6, ""),
    ("negative", -2, -1, "EINVAL"),
    ("last", (1 << 63) - 7, 6, ""),
    ("behind_last", (1 << 63) - 6, -1, "EINVAL"),
)
def test_offset(ue: UserEvents, offset: int, value: int, errno: str) -> None:
    """Any valid offset is accepted, where pwrite(2) accepts only 0."""
    data = ue.event("u16 a", enabled=True).data
    seen = data.submit(b"\0\0\0\0\1\0", offset=offset)
    assert (seen.value, seen.errno) == (value, errno)
    assert len(ue.tracefs.records()) == (0 if errno else 1)
    assert data.pwrite(b"\0\0\0\0\1\0", 5).errno == "EFAULT"


@case(spec="lib/iov_iter.c:import_ubuf", level="detail", needs="payload_size_checked")
def test_longest_write(ue: UserEvents) -> None:
    """A submission counts up to 2 GiB less a page: a larger event cannot be written."""
    data = ue.register(a="struct s a 2147479548", b="struct s a 2147479549")
    first, second = (ue.process.place(bytes([index, 0, 0, 0])) for index in (0, 1))
    seen = data.submit_at(first, 0x80000003)
    disabled = ue.dated("ebadf_when_disabled", since=(-1, "EBADF"), before=(0x7FFFF000, ""))
    assert (seen.value, seen.errno) == disabled
    assert data.submit_at(second, 0x80000003).errno == "EINVAL"


@case(spec="rw.c:io_write; fs/read_write.c:do_iter_readv_writev", level="detail")
@variants({"none": (), "one_empty": (b"",), "two_empty": (b"", b"")})
def test_empty_vector(ue: UserEvents, parts: tuple[bytes, ...]) -> None:
    """A vector without bytes lacks its index, EFAULT, where writev(2) returns 0."""
    data = ue.event("u16 a", enabled=True).data
    assert data.submitv(parts).errno == "EFAULT"
    assert data.writev(parts).value == 0
    assert ue.tracefs.records() == []


@case(spec="user_events_write_core: copy_from_iter")
def test_split(ue: UserEvents) -> None:
    """Index and payload may be split anywhere among the segments."""
    data = ue.event("u32 a", enabled=True).data
    assert data.submitv((b"\0", b"", b"\0\0\0\1\2", b"\3", b"\4")).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x4030201 (67305985)", dump="01 02 03 04")]


@case(spec="lib/iov_iter.c:iovec_from_user", level="detail")
def test_too_many_segments(ue: UserEvents) -> None:
    """1024 segments are accepted; 1025 are EINVAL."""
    data = ue.event("u16 a", enabled=True).data
    raw = ue.process.place(b"\0\0\0\0\1\0")
    segments = struct.pack("<QQ", raw, 6) + struct.pack("<QQ", raw, 0) * 1024
    vector = ue.process.place(segments)
    assert data.submit_at(vector, 1024, vector=True).value == 6
    assert data.submit_at(vector, 1025, vector=True).errno == "EINVAL"
    assert len(ue.tracefs.records()) == 1


@case(spec="rw.c:io_rw_init_file, io_file_supports_nowait", level="detail")
def test_nonblocking(ue: UserEvents) -> None:
    """O_NONBLOCK on the descriptor changes nothing: the write completes without EAGAIN."""
    data = ue.open_data(os.O_RDWR | os.O_NONBLOCK)
    data.register(ue.name() + " u16 a")
    ue.tracefs.enable(ue.name())
    assert data.submit(b"\0\0\0\0\1\0").value == 6
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]
    # Another worker may perform the second write: do not compare the tasks of the two.
    ue.tracefs.clear_trace()
    assert data.submitv((b"\0\0\0\0", b"\2\0")).value == 6
    assert ue.tracefs.records() == [ue.line("a=0x2 (2)", dump="02 00")]


@case(spec="rw.c:io_rw_init_file: FMODE_WRITE", level="detail")
def test_read_only(ue: UserEvents) -> None:
    """A read-only descriptor cannot be written: EBADF."""
    data = ue.open_data(os.O_RDONLY)
    data.register(ue.name() + " u16 a")
    ue.tracefs.enable(ue.name())
    assert data.submit(b"\0\0\0\0\1\0").errno == "EBADF"
    assert ue.tracefs.records() == []


@case(level="detail", isolation="global")
@spec("rw.c:io_write: the file is regular; io-wq.c:create_io_worker")
@doc("ftrace.rst@v6.12: set_event_pid: only the listed tasks are traced")
def test_of_a_worker(ue: UserEvents) -> None:
    """A worker of the process writes in an io-wq thread, which has no list of its own."""
    data = ue.event("u16 a", enabled=True).data
    assert ue.process.write_pid(ue.tracefs.path("set_event_pid")).errno == ""
    assert (data.submit(b"\0\0\0\0\1\0").value, data.write(b"\0\0\0\0\2\0").value) == (6, 6)
    assert ue.tracefs.records() == [ue.line("a=0x2 (2)", dump="02 00")]
    flags = os.O_WRONLY | os.O_TRUNC
    assert ue.tracefs.write(ue.tracefs.path("set_event_pid"), "\n", flags).value == 1


@case(spec="include/linux/user_events.h:user_events_fork", profiles="6.4..", needs="auto_delete")
@doc("Deleting: by default an event is deleted when no references are left; silent about io_uring")
def test_worker_keeps_nothing(ue: UserEvents) -> None:
    """Workers share the words of their process: the event is deleted when it exits."""
    data = ue.event("u16 a", enabled=True).data
    assert data.submit(b"\0\0\0\0\1\0").value == 6
    ue.tracefs.disable(ue.name())
    data.close()
    assert ue.tracefs.status() == f"{ue.name()}\n"
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="include/linux/user_events.h:user_events_fork", profiles="6.4..")
@doc("Registering: the word is of the process; silent about io_uring")
def test_worker_before_registration(ue: UserEvents) -> None:
    """A worker older than the first registration does not affect the word."""
    data = ue.open_data()
    assert data.submit(b"\0\0\0\0\1\0").errno == "ENOENT"
    word = data.register(ue.name() + " u16 a").word
    ue.tracefs.enable(ue.name())
    assert word.value == 1
    assert data.submit(b"\0\0\0\0\1\0").value == 6
    assert data.unregister(word).value == 0
    assert word.value == 0
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)")]
