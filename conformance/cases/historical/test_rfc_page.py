"""Files of the first version, and the page with one byte per event."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.rfc_v1 import PATCH, bound_data, page_of
from conformance.cases.support.status_page import (
    PROT_READ,
    PROT_WRITE,
    READ_WRITE,
    map_page,
    mapping_error,
)
from conformance.client.addresses import PROT_NONE
from conformance.client.files import File
from conformance.client.rfc_v1 import register
from conformance.client.tracefs import DATA, MMAP

DOC = f"{PATCH}: one file is mapped, the other takes ioctls and data"
LENGTH = "trace_events_user.c@rfc-v1: the length of a mapping is that of the page"
MAPPED = "the file is mapped into programs, shared and to be read"
case = surface("rfc", spec="user_events_mmap", doc=DOC, level="behaviour", profiles="rfc-v1")


@case(spec="create_user_tracefs", isolation="none")
@doc("trace_events_user.c@rfc-v1: both files have mode 0644")
@variants({"user_events_data": DATA, "user_events_mmap": MMAP})
def test_file_mode(ue: UserEvents, path: str) -> None:
    """All users can read both files, and their owner can write them."""
    assert ue.tracefs.mode(path) == 0o644


@case(spec="user_events_data_fops, user_events_mmap_fops", isolation="none")
@variants({"user_events_mmap": MMAP, "user_events_data": DATA})
def test_not_read(ue: UserEvents, path: str) -> None:
    """Neither file can be read or has a position."""
    file = File(ue.process, path, os.O_RDWR)
    assert (file.read().errno, file.lseek(0).errno) == ("EINVAL", "ESPIPE")


@case(spec="user_events_data_fops, user_events_mmap_fops", isolation="none")
def test_other_way_round(ue: UserEvents) -> None:
    """The data file cannot be mapped, and write(2) does not change the page."""
    assert File(ue.process, DATA, os.O_RDWR).map().errno == "ENODEV"
    assert File(ue.process, MMAP, os.O_RDWR).write(b"\x01").errno == "EINVAL"


@case(doc=LENGTH, isolation="none")
@variants((4096, ""), (8192, "EINVAL"), (1, ""), (4097, "EINVAL"), (0, "EINVAL"))
def test_page_length(ue: UserEvents, length: int, errno: str) -> None:
    """A mapping must have the length of the page, rounded up to pages; else EINVAL."""
    assert mapping_error(ue.process, file=MMAP, length=length) == errno


@case(doc=LENGTH)
@variants({"4096": 4096, "1-mib": 1 << 20})
def test_page_offset(ue: UserEvents, offset: int) -> None:
    """Any page-aligned offset maps the same page; others are EINVAL."""
    page = page_of(ue.process)
    seen, address = ue.process.map_status(page.slot, offset=offset)
    assert seen.errno == ""
    place = register(ue.open_data(), ue.name()).value
    ue.tracefs.enable(ue.name())
    assert ue.process.load_number(address + place, 1) == 1
    assert mapping_error(ue.process, file=MMAP, offset=offset + 1) == "EINVAL"


@case(spec="mm/mmap.c:do_mmap", doc=MAPPED, level="detail", isolation="none")
@variants(
    ("as-in-the-message", os.O_RDWR, PROT_READ, True, ""),
    ("read-only", os.O_RDONLY, PROT_READ, True, ""),
    ("read-only-written", os.O_RDONLY, READ_WRITE, True, "EACCES"),
    ("read-only-private", os.O_RDONLY, READ_WRITE, False, ""),
    ("write-only", os.O_WRONLY, PROT_READ, True, "EACCES"),
    ("written", os.O_RDWR, READ_WRITE, True, ""),
    ("write", os.O_RDWR, PROT_WRITE, True, ""),
    ("none", os.O_RDONLY, PROT_NONE, True, ""),
)
def test_page_rights(ue: UserEvents, flags: int, protection: int, shared: bool, errno: str) -> None:
    """A mapping is limited to the mode of its descriptor, which may be writable."""
    found = mapping_error(ue.process, file=MMAP, opened=flags, protection=protection, shared=shared)
    assert found == errno


@case(spec="mm/mmap.c:do_mmap", doc=LENGTH, level="detail", isolation="none")
def test_page_rights_before_length(ue: UserEvents) -> None:
    """With a wrong length and no permission the error is that of the permission."""
    assert mapping_error(ue.process, file=MMAP, length=8192, protection=READ_WRITE) == "EACCES"
    assert mapping_error(ue.process, file=MMAP, length=8192, opened=os.O_RDWR) == "EINVAL"


@case(doc=MAPPED)
@variants(("read-write", os.O_RDWR, ""), ("read-only", os.O_RDONLY, "EACCES"))
def test_page_unwritable(ue: UserEvents, opened: int, raised: str) -> None:
    """A store to a read-only mapping faults, unless it can be made writable."""
    page = map_page(ue.process, file=MMAP, opened=opened)
    place = register(ue.open_data(), ue.name()).value
    ue.tracefs.enable(ue.name())
    assert page.store(place, b"\x01").errno == "EFAULT"
    assert page.protect(READ_WRITE).errno == raised
    assert page.store(place, b"\x01").errno == ("EFAULT" if raised else "")
    assert page.shows(place) == 1


@case(doc="mapped at the start of a process")
def test_page_outlives(ue: UserEvents) -> None:
    """A mapping stays and is updated after its descriptor is closed."""
    page = page_of(ue.process)
    page.close()
    place = register(ue.open_data(), ue.name()).value
    ue.tracefs.enable(ue.name())
    assert page.shows(place) == 1


@case(spec="update_reg_page_for")
@doc("the byte of an event that is hooked is not zero;")
@doc("trace_events_user.c@rfc-v1: bit 0 is ftrace, bit 1 perf, bit 7 any other tracer")
def test_byte_follows(ue: UserEvents) -> None:
    """The byte is 1 while ftrace has the event enabled and 0 afterwards, repeatedly."""
    page = page_of(ue.process)
    place = register(ue.open_data(), ue.name()).value
    for _ in range(2):
        ue.tracefs.enable(ue.name())
        assert page.shows(place) == 1
        ue.tracefs.disable(ue.name())
        assert page.shows(place) == 0


@case(spec="trace_events_user_init: kmalloc", level="detail")
@doc("the byte of an event that is hooked is not zero; silent of an event that never was")
def test_byte_at_first(ue: UserEvents) -> None:
    """The byte of a new event is undefined until a tracer has attached and detached."""
    page = page_of(ue.process)
    place = register(ue.open_data(), ue.name()).value
    # Its value is undefined, but it does not change by itself.
    first = page.load(place).data
    assert page.load(place).data == first
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    assert page.load(place).data == b"\0"


@case(spec="destroy_user_event", doc="the byte of an event that is hooked is not zero")
@variants({"ioctl": False, "dynamic_events": True})
def test_byte_after_deletion(ue: UserEvents, by_command: bool) -> None:
    """Deleting an event clears its byte: the next event starts with zero."""
    page = page_of(ue.process)
    data = ue.open_data()
    place = register(data, ue.name()).value
    data.close()
    if by_command:
        ue.tracefs.command(f"-:{ue.name()}\n")
    else:
        ue.open_data().delete(ue.name())
    assert page.shows(place) == 0
    assert register(ue.open_data(), ue.name("next")).value == place
    assert page.shows(place) == 0
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name('next')}\n"


@case(spec="update_reg_page_for", isolation="global")
@doc("the byte of an event that is hooked is not zero")
def test_byte_of_each(ue: UserEvents) -> None:
    """Each event has its own byte: adjacent bytes do not change."""
    page = page_of(ue.process)
    for name in ("one", "two", "three"):
        bound_data(ue, name)
        ue.tracefs.enable(name)
    assert page.load(1, 3).data == b"\x01\x01\x01"
    ue.tracefs.disable("two")
    assert page.load(1, 3).data == b"\x01\x00\x01"
    ue.tracefs.disable("three")
    ue.tracefs.disable("one")
    assert page.load(1, 3).data == b"\x00\x00\x00"


@case(doc=MAPPED)
def test_byte_seen_by_all(ue: UserEvents) -> None:
    """All processes see the same page: a child its parent's mapping, another process its own."""
    page = page_of(ue.process)
    place = register(ue.open_data(), ue.name()).value
    child = page.of(ue.fork(ue.process))
    stranger = page_of(ue.new_process())
    ue.tracefs.enable(ue.name())
    assert [each.shows(place) for each in (page, child, stranger)] == [1, 1, 1]
    ue.tracefs.disable(ue.name())
    assert [each.shows(place) for each in (page, child, stranger)] == [0, 0, 0]


@case(level="detail", isolation="global")
@spec("mm/memory.c:do_wp_page; trace_events_user.c:user_event_show")
@doc("the file is mapped into programs, shared and to be read; silent of mappings to be written")
def test_page_stored(ue: UserEvents) -> None:
    """A store to a shared mapping is seen by all, until a tracer attaches or detaches."""
    page = map_page(ue.process, file=MMAP, opened=os.O_RDWR, protection=READ_WRITE)
    other = page_of(ue.new_process())
    assert register(ue.open_data(), "e").value == 1
    assert page.store(1, b"\x80").errno == ""
    assert other.shows(1) == 128
    assert ue.tracefs.dynamic_events(whole=True) == "ue:e (Used by other)\n"
    ue.tracefs.enable("e")
    assert other.shows(1) == 1
    assert ue.tracefs.dynamic_events(whole=True) == "ue:e (Used by ftrace)\n"


@case(spec="user_event_show", level="detail")
@doc("trace_events_user.c@rfc-v1: bit 0 is ftrace, bit 1 perf, bit 7 any other tracer;")
@doc(f"{PATCH}: who listens is shown")
@variants(
    ("ftrace", 0x01, " (Used by ftrace)"),
    ("all", 0x83, " (Used by ftrace perf other)"),
    ("perf", 0x02, " (Used by perf)"),
    ("both", 0x03, " (Used by ftrace perf)"),
    ("other", 0x80, " (Used by other)"),
    ("meaningless", 0x7C, " (Used by)"),
    ("nobody", 0x00, ""),
)
def test_byte_as_text(ue: UserEvents, byte: int, text: str) -> None:
    """dynamic_events names the bits of the byte, even stored ones; unknown bits have no name."""
    page = map_page(ue.process, file=MMAP, opened=os.O_RDWR, protection=READ_WRITE)
    place = register(ue.open_data(), ue.name() + ";u8\ta\t1\t0").value
    page.store(place, bytes([byte]))
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name()};u8 a{text}\n"


@case(spec="mm/memory.c:do_wp_page", doc=MAPPED, level="detail")
def test_page_private(ue: UserEvents) -> None:
    """A store to a private mapping is private, and ends updates of that copy."""
    page = page_of(ue.process)
    private = map_page(ue.process, file=MMAP, protection=READ_WRITE, shared=False)
    place = register(ue.open_data(), ue.name()).value
    ue.tracefs.enable(ue.name())
    assert private.shows(place) == 1
    private.store(0, b"\xff" * 4096)
    ue.tracefs.disable(ue.name())
    assert (page.shows(place), private.shows(place)) == (0, 255)
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name()}\n"
