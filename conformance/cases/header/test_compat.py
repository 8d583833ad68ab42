"""32-bit tasks on a 64-bit kernel: write and mmap work, no ioctl reaches user_events."""

import os
import struct

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.status_page import PROT_READ, StatusPage, length_of
from conformance.cases.support.status_text import without_maximum
from conformance.client.tasks import LOW, Task, first_task
from conformance.client.tracefs import DATA, STATUS
from conformance.ops.compat import Writev32

SPEC = "trace_events_user.c:user_data_fops has no compat_ioctl"
DOC = "Registering: silent about programs of 32 bits on a 64-bit kernel"
WRITING = "Writing Data: silent about programs of 32 bits on a 64-bit kernel"
case = surface("compat", SPEC, DOC, level="behaviour", tier="full", facilities="ia32")

# Pointers of 64 and of 32 bits, by the size that the request number encodes.
REQUESTS = {
    "register": 0xC0082A00,
    "register_32": 0xC0042A00,
    "delete": 0x40082A01,
    "delete_32": 0x40042A01,
    "unregister": 0x40082A02,
    "unregister_32": 0x40042A02,
    "rfc_register": 0x40082A00,
    "rfc_offset": 0x2A02,
    "unknown": 0x2A03,
}
MAP_SHARED = 1
# The errno of 64-bit tasks for the registration at LOW as the argument, since 6.4 and before.
REACHED = {
    0xC0082A00: ("", "E2BIG"),
    0xC0042A00: ("", "E2BIG"),
    0x40082A01: ("ENOENT", "ENOENT"),
    0x40042A01: ("ENOENT", "ENOENT"),
    0x40082A02: ("E2BIG", "ENOTTY"),
    0x40042A02: ("E2BIG", "ENOTTY"),
}


def prepared(ue: UserEvents) -> tuple[Task, int]:
    """A task with low memory that holds a valid registration, and its data file."""
    task = first_task(ue)
    low = task.map_low()
    definition = low + 0x800
    task.store(definition, ue.name().encode() + b" u32 a\0")
    # struct user_reg: size 28, bit 0 of a 4-byte word, no flags.
    reg = bytes([28, 0, 0, 0, 0, 4, 0, 0])
    reg += (low + 0x400).to_bytes(8, "little") + definition.to_bytes(8, "little") + b"\xff" * 4
    task.store(low, reg)
    return task, task.open_data().slot


@case(tier="quick", switch="compat-ioctl")
@variants(REQUESTS)
def test_ioctl(ue: UserEvents, number: int) -> None:
    """An ioctl of a 32-bit task on the data file works as that of a 64-bit task."""
    task, file = prepared(ue)
    since, before = REACHED.get(number, ("ENOTTY", "ENOTTY"))
    reached = ue.dated("remote_enable", since=since, before=before)
    errno = ue.bug("compat-ioctl", fixed=reached, present="ENOTTY")
    unreadable = "ENOTTY" if errno == "ENOTTY" else "EFAULT"
    assert task.ioctl32(file, number, LOW).errno == errno
    assert task.ioctl32(file, number, 0).errno == unreadable
    assert task.ioctl32(file, number, 0xFFFFF000).errno == unreadable
    assert task.load(LOW + 24, 4).data == (b"\xff\xff\xff\xff" if errno else b"\0\0\0\0")
    assert ue.tracefs.definitions() == ("" if errno else f"u:{ue.name()} u32 a\n")


@case(spec="trace_events_user.c:user_status_fops has no compat_ioctl", level="detail")
@variants(REQUESTS)
def test_status_ioctl(ue: UserEvents, number: int) -> None:
    """The status file has no ioctl for 32-bit tasks either."""
    task, _ = prepared(ue)
    _, status = task.open(STATUS, 0)
    assert task.ioctl32(status, number, LOW).errno == "ENOTTY"
    assert task.ioctl32(status, number, 0).errno == "ENOTTY"


@case(spec="fs/ioctl.c:compat_sys_ioctl", level="detail", bug="compat-ioctl")
def test_ioctl_closed(ue: UserEvents) -> None:
    """A 32-bit task's ioctl on a closed descriptor is EBADF: the descriptor is checked first."""
    task, file = prepared(ue)
    data = task.open_data()
    data.close()
    assert task.ioctl32(data.slot, 0xC0082A00, LOW).errno == "EBADF"
    open_ = ue.dated("remote_enable", since="", before="E2BIG")
    errno = ue.bug("compat-ioctl", fixed=open_, present="ENOTTY")
    assert task.ioctl32(file, 0xC0082A00, LOW).errno == errno


@case(bug="compat-ioctl")
def test_register_with_64_bits(ue: UserEvents) -> None:
    """A 32-bit task registers; the same task, switched to 64 bits, gets index 0 of another file."""
    task, file = prepared(ue)
    reached = ue.dated("remote_enable", since="", before="E2BIG")
    errno = ue.bug("compat-ioctl", fixed=reached, present="ENOTTY")
    assert task.ioctl32(file, 0xC0082A00, LOW).errno == errno
    event = task.open_data().register(ue.name() + " u32 a")
    assert (event.errno, event.index) == ("", 0)


@case(profiles="5.18..6.3", bug="compat-ioctl")
def test_delete_refused(ue: UserEvents) -> None:
    """A 32-bit task can delete an event as a 64-bit task could."""
    task, file = prepared(ue)
    ue.tracefs.command("u:" + ue.name())
    task.store(LOW + 0x800, ue.name().encode() + b"\0")
    errno = ue.bug("compat-ioctl", fixed="", present="ENOTTY")
    assert task.ioctl32(file, 0x40042A01, LOW + 0x800).errno == errno
    assert ue.tracefs.definitions() == (f"u:{ue.name()}\n" if errno else "")
    assert ue.open_data().delete(ue.name()).errno == ("" if errno else "ENOENT")


@case(profiles="6.4..", bug="compat-ioctl")
def test_unregister_refused(ue: UserEvents) -> None:
    """A 32-bit task can unregister a word that it registered as a 64-bit task."""
    task, _ = prepared(ue)
    data = task.open_data()
    word = data.register(ue.name(), word=task.word_at(LOW + 0x400), bit=1).word
    # struct user_unreg: size 16, bit 1, reserved members zero.
    unreg = bytes([16, 0, 0, 0, 1, 0, 0, 0]) + word.address.to_bytes(8, "little")
    task.store(LOW, unreg)
    errno = ue.bug("compat-ioctl", fixed="", present="ENOTTY")
    assert task.ioctl32(data.slot, 0x40042A02, LOW).errno == errno
    assert task.ioctl32(data.slot, 0x40082A02, LOW).errno == (errno or "ENOENT")
    ue.tracefs.enable(ue.name())
    assert word.value == (2 if errno else 0)


@case(spec="trace_events_user.c:user_events_write_core", doc=WRITING)
def test_write(ue: UserEvents) -> None:
    """A 32-bit task writes index and payload like any other; write returns the full count."""
    task, _ = prepared(ue)
    data = ue.event("u32 a", enabled=True, of=task).data
    assert task.write32(data.slot, b"\0\0\0\0\x09\0\0\0").value == 8
    assert ue.tracefs.records() == [ue.line("a=0x9 (9)", dump="09 00 00 00")]


@case(spec="trace_events_user.c:user_events_write_core", doc=WRITING, needs="payload_size_checked")
@variants(
    ("index_missing", b"\0\0\0", "EFAULT"),
    ("index_unknown", b"\x01\0\0\0\0\0\0\0", "ENOENT"),
    ("payload_short", b"\0\0\0\0\0\0\0", "EINVAL"),
)
def test_write_refused(ue: UserEvents, written: bytes, error: str) -> None:
    """Writes of a 32-bit task fail for the same reasons as those of a 64-bit task."""
    task, _ = prepared(ue)
    data = ue.event("u32 a", enabled=True, of=task).data
    assert task.write32(data.slot, written).errno == error
    assert ue.tracefs.records() == []


@case(doc=WRITING, needs="ebadf_when_disabled")
@spec("trace_events_user.c:user_events_write_core")
def test_write_nobody_listens(ue: UserEvents) -> None:
    """Writing a disabled event from a 32-bit task fails with EBADF, by write and by writev."""
    task, _ = prepared(ue)
    data = ue.event("u32 a", of=task).data
    assert task.write32(data.slot, b"\0\0\0\0\x09\0\0\0").errno == "EBADF"
    assert task.writev32(data.slot, [b"\0\0\0\0", b"\x09\0\0\0"]).errno == "EBADF"


@case(spec="lib/iov_iter.c:copy_compat_iovec_from_user", doc=WRITING, level="detail")
@variants(
    ("two", [b"\0\0\0\0", b"\x09\0\0\0"]),
    ("one", [b"\0\0\0\0\x09\0\0\0"]),
    ("index_split", [b"\0", b"\0\0", b"\0\x09", b"\0\0\0"]),
    ("empty_parts", [b"", b"\0\0\0\0", b"", b"\x09\0\0\0", b""]),
)
def test_writev(ue: UserEvents, parts: list[bytes]) -> None:
    """writev of a 32-bit task takes 8-byte iovecs, however index and payload are split."""
    task, _ = prepared(ue)
    data = ue.event("u32 a", enabled=True, of=task).data
    assert task.writev32(data.slot, parts).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x9 (9)", dump="09 00 00 00")]


@case(spec="lib/iov_iter.c:copy_compat_iovec_from_user", doc=WRITING, level="detail")
@variants(
    ("length_negative", bytes([0, 0x10, 0, 0x10, 0, 0, 0, 0x80]), 1, "EINVAL"),
    ("length_largest", bytes([0, 0x1F, 0, 0x10, 0xFF, 0xFF, 0xFF, 0x7F]), 1, "ENOENT"),
    ("count_too_large", b"", 1025, "EINVAL"),
    ("count_negative", b"", -1, "EINVAL"),
    ("unreadable", bytes([0, 0, 0, 0x40, 8, 0, 0, 0]), 1, "EFAULT"),
    ("index_missing", bytes([0, 0x10, 0, 0x10, 3, 0, 0, 0]), 1, "EFAULT"),
    ("index_unknown", bytes([0, 0x1F, 0, 0x10, 8, 0, 0, 0]), 1, "ENOENT"),
)
def test_writev_refused(ue: UserEvents, vector: bytes, count: int, error: str) -> None:
    """writev of a 32-bit task checks its iovecs first, then what they contain."""
    task, _ = prepared(ue)
    data = task.open_data()
    task.store(LOW + 0x1F00, b"\x05\0\0\0\0\0\0\0")
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert task.writev32_at(data.slot, vector, count).errno == error


@case(spec="lib/iov_iter.c:copy_compat_iovec_from_user", doc=WRITING, level="detail")
@variants({"none": [], "empty": [b""], "empty_twice": [b"", b""], "most": [b""] * 1024})
def test_writev_of_nothing(ue: UserEvents, parts: list[bytes]) -> None:
    """writev of zero bytes from a 32-bit task returns 0 without reading an index."""
    task, file = prepared(ue)
    assert task.writev32(file, parts).value == 0


@case(spec="lib/iov_iter.c:copy_compat_iovec_from_user", doc=WRITING, level="detail")
def test_writev_vector_unreadable(ue: UserEvents) -> None:
    """An iovec array that a 32-bit task has not mapped is EFAULT; a read-only descriptor, EBADF."""
    task, file = prepared(ue)
    # A negative length in the part that is mapped is found first.
    last = LOW + 2 * 4096 - 8
    task.store(last, struct.pack("<II", LOW, 1 << 31))
    assert task.run(Writev32(task.actor, file, last, 2)).errno == "EINVAL"
    task.store(last, struct.pack("<II", LOW, (1 << 31) - 1))
    assert task.run(Writev32(task.actor, file, last, 2)).errno == "EFAULT"
    assert task.run(Writev32(task.actor, file, LOW - 8, 0)).value == 0
    read_only = task.open_data(os.O_RDONLY).slot
    assert task.writev32(read_only, [b"\0\0\0\0"]).errno == "EBADF"
    task.unmap(LOW, 2)
    assert task.writev32_at(file, b"", 1).errno == "EFAULT"


@case(spec="trace_events_user.c:user_seq_show", isolation="global")
@doc("Status: the file lists all registered events; silent about programs of 32 bits")
def test_status_text(ue: UserEvents) -> None:
    """A 32-bit task reads the same status text."""
    task, _ = prepared(ue)
    task.open_data().register(ue.name())
    ue.tracefs.enable(ue.name())
    _, status = task.open(STATUS, 0)
    line = ue.status_line(1, ue.name(), "ftrace")
    seen = without_maximum(ue, task.read32(status, 4096).text)
    assert seen == f"{line}\nActive: 1\nBusy: 1\n"


@case(spec="trace_events_user.c:user_status_mmap", profiles="5.18..6.3", tier="quick")
@doc("@v6.1: Status: programs map the file; silent about programs of 32 bits")
def test_status_page(ue: UserEvents) -> None:
    """A 32-bit task maps the status page and sees its event's byte change."""
    task, _ = prepared(ue)
    _, status = task.open(STATUS, 2)
    event = task.open_data().register(ue.name())
    where = LOW + 0x4000
    page = StatusPage(task, where, status)
    seen = task.mmap32(where, length_of(task), PROT_READ, MAP_SHARED, status)
    assert seen.value == 0x10004000
    assert page.shows(event.place) == 0
    ue.tracefs.enable(ue.name())
    assert page.shows(event.place) == 1


@case(spec="trace_events_user.c:user_status_fops has no mmap", profiles="6.4..")
@doc("Status: the file is read; silent about mapping it")
@variants({"status": STATUS, "data": DATA})
def test_mmap_refused(ue: UserEvents, path: str) -> None:
    """A 32-bit task can map neither the status file nor the data file."""
    task, _ = prepared(ue)
    _, file = task.open(path, 0)
    assert task.mmap32(LOW + 0x4000, 4096, PROT_READ, MAP_SHARED, file).errno == "ENODEV"
