"""write(): open mode of the descriptor, and its file position, which never moves."""

from __future__ import annotations

import os

from conformance.cases.case import surface, variants
from conformance.cases.support.writing import INDEX, RECORD
from conformance.client.files import File
from conformance.client.tracefs import DATA
from conformance.client.user_events import UserEvents

case = surface(
    "write",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data",
)


@case(spec="user_data_fops; fs/read_write.c:vfs_llseek", doc="the file is for ioctl and write")
def test_no_position(ue: UserEvents) -> None:
    """The data file cannot be seeked, ESPIPE, or read, EINVAL."""
    file = File(ue.process, DATA, os.O_RDWR)
    assert file.lseek(0).errno == "ESPIPE"
    assert file.lseek(0, os.SEEK_END).errno == "ESPIPE"
    assert file.read(4).errno == "EINVAL"


@case(
    spec="fs/read_write.c:vfs_write, do_iter_write: FMODE_WRITE",
    doc="events are written with write() or writev() on the descriptor",
    tier="full",
)
def test_read_only_descriptor(ue: UserEvents) -> None:
    """A read-only descriptor registers events and cannot write them: EBADF."""
    data = ue.open_data(os.O_RDONLY)
    assert data.register(ue.name() + " u32 a").value == 0
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD).errno == "EBADF"
    assert data.writev([INDEX, b"\1\0\0\0"]).errno == "EBADF"
    assert data.writev([]).errno == "EBADF"
    assert ue.tracefs.records() == []


@case(spec="user_data_fops", doc="the descriptor that registered an event writes it")
def test_write_only_descriptor(ue: UserEvents) -> None:
    """A write-only descriptor registers and writes."""
    data = ue.open_data(os.O_WRONLY)
    assert data.register(ue.name() + " u32 a").value == 0
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]


@case(spec="user_events_write: *ppos != 0", doc="names write() and writev() only")
@variants(
    ("0", 0, ""),
    ("1", 1, "EFAULT"),
    ("8", 8, "EFAULT"),
    ("2_to_40", 1 << 40, "EFAULT"),
    ("minus_1", -1, "EINVAL"),
)
def test_pwrite_position(ue: UserEvents, offset: int, errno: str) -> None:
    """pwrite works at offset 0 only."""
    data = ue.event("u32 a", enabled=True).data
    assert data.pwrite(RECORD, offset).errno == errno
    assert len(ue.tracefs.records()) == (1 if errno == "" else 0)


@case(spec="user_events_write_iter looks at no position", doc="names write() and writev() only")
@variants(
    ("0", 0, ""), ("1", 1, ""), ("8", 8, ""), ("2_to_40", 1 << 40, ""), ("minus_2", -2, "EINVAL")
)
def test_pwritev_position(ue: UserEvents, offset: int, errno: str) -> None:
    """pwritev works at any nonnegative offset."""
    data = ue.event("u32 a", enabled=True).data
    assert data.pwritev([INDEX, b"\1\0\0\0"], offset).errno == errno
    assert len(ue.tracefs.records()) == (1 if errno == "" else 0)


@case(
    spec="user_events_write does not advance *ppos",
    doc="the descriptor takes one entry after the other",
    tier="full",
)
def test_position_stays(ue: UserEvents) -> None:
    """Writing does not move the file position: a third write succeeds like the first."""
    data = ue.event("u32 a", enabled=True).data
    assert [data.write(RECORD).value for _ in range(3)] == [8, 8, 8]
    assert data.pwrite(RECORD, 8).errno == "EFAULT"
    assert len(ue.tracefs.records()) == 3
