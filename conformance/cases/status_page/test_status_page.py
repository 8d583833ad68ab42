"""Mapping user_events_status: lengths, offsets, protections, and the order of checks."""

import os
from typing import Any

from msgspec.structs import replace

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.status_page import (
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    READ_WRITE,
    length_of,
    map_page,
    mapping_error,
)
from conformance.client.addresses import PROT_NONE
from conformance.client.tracefs import DATA

SPEC = "user_status_mmap"
DOC = "@v5.19 and @v6.1: Status: programs map the page; silent about the rights of a mapping"
OFFSETS = "Status: the size of the file is a page, or a multiple of it; silent about offsets"
case = surface("status_page", SPEC, DOC, level="detail", profiles="5.18..6.3", isolation="none")


def error_of(ue: UserEvents, opened: int, protection: int, shared: bool) -> str:
    """Errno of a mapping of the right length."""
    length = length_of(ue.process)
    return mapping_error(
        ue.process, opened=opened, length=length, protection=protection, shared=shared
    )


@case(level="behaviour")
@doc("Status: the size of the file is a page, or a multiple of it; silent about other lengths")
@variants(
    ("4096", 4096, "", "EINVAL"),
    ("8192", 8192, "EINVAL", ""),
    ("1", 1, "", "EINVAL"),
    ("4095", 4095, "", "EINVAL"),
    ("4097", 4097, "EINVAL", ""),
    ("12288", 12288, "EINVAL", "EINVAL"),
    ("1-mib", 1 << 20, "EINVAL", "EINVAL"),
    ("0", 0, "EINVAL", "EINVAL"),
)
def test_length(ue: UserEvents, length: int, one: str, two: str) -> None:
    """A mapping must have the length of the status page, rounded up to pages; else EINVAL."""
    found = mapping_error(ue.process, length=length)
    assert found == ue.dated("two_status_pages", since=two, before=one)


@case(doc=OFFSETS, isolation="events")
@variants({"4096": 4096, "1-mib": 1 << 20, "1-tib": 1 << 40})
def test_offset_ignored(ue: UserEvents, offset: int) -> None:
    """Any page-aligned offset maps the same page, the first."""
    page = map_page(ue.process)
    length = length_of(ue.process)
    seen, address = ue.process.map_status(page.slot, length=length, offset=offset)
    assert seen.errno == ""
    place = ue.event(enabled=True).place
    content = page.load(0, 64).data
    assert ue.process.load(address, 64).data == content
    assert page.shows(place) == 1


@case(spec="mm/mmap.c:do_mmap")
@variants(
    ("read-only", os.O_RDONLY, PROT_READ, True),
    ("execute", os.O_RDONLY, PROT_EXEC, True),
    ("none", os.O_RDONLY, PROT_NONE, True),
    ("read-execute", os.O_RDONLY, PROT_READ | PROT_EXEC, True),
    ("private-read", os.O_RDONLY, PROT_READ, False),
    ("private-write", os.O_RDONLY, READ_WRITE, False),
    ("private-none", os.O_RDONLY, PROT_NONE, False),
    # As the samples and selftests of these kernels open it.
    ("read-write-descriptor", os.O_RDWR, PROT_READ, True),
    ("writable", os.O_RDWR, READ_WRITE, True),
    ("write", os.O_RDWR, PROT_WRITE, True),
    ("everything", os.O_RDWR, READ_WRITE | PROT_EXEC, True),
    quick=2,
)
def test_granted(ue: UserEvents, opened: int, protection: int, shared: bool) -> None:
    """A mapping is granted if the descriptor's mode permits its protection."""
    assert error_of(ue, opened, protection, shared) == ""


@case(spec="mm/mprotect.c:do_mprotect_pkey", isolation="events")
@variants(
    ("read-only", os.O_RDONLY, True, "EACCES"),
    ("private", os.O_RDONLY, False, ""),
    ("read-write", os.O_RDWR, True, ""),
)
def test_raised_rights(ue: UserEvents, opened: int, shared: bool, errno: str) -> None:
    """A mapping can be made writable later only if it could have been from the start."""
    page = map_page(ue.process, opened=opened, shared=shared)
    assert page.protect(READ_WRITE).errno == errno
    assert page.store(0, b"\0").errno == ("EFAULT" if errno else "")
    assert page.load(0, 1).data == b"\0"


@case(spec="mm/mprotect.c:change_protection", isolation="events")
def test_rights_taken(ue: UserEvents) -> None:
    """A page made unreadable shows changes made meanwhile once it is readable again."""
    page, event = map_page(ue.process), ue.event()
    assert page.protect(PROT_NONE).value == 0
    assert page.load(0, 1).errno == "EFAULT"
    event.enable()
    assert page.protect(PROT_READ).value == 0
    assert page.shows(event.place) == 1


@case(tier="full", isolation="events", switch="status-page-prot-none")
@spec("user_status_mmap: vm_get_page_prot(VM_READ)")
@variants(
    ("none", os.O_RDONLY, PROT_NONE, True),
    ("none-private", os.O_RDONLY, PROT_NONE, False),
    ("execute", os.O_RDONLY, PROT_EXEC, True),
    ("write", os.O_RDWR, PROT_WRITE, True),
)
def test_mapped_without_rights(ue: UserEvents, opened: int, protection: int, shared: bool) -> None:
    """A mapping with any right is readable, one without rights is not."""
    page = map_page(ue.process, opened=opened, protection=protection, shared=shared)
    event = ue.event()
    if ue.bug("status-page-prot-none", fixed=protection == PROT_NONE, present=False):
        assert page.load(0, 1).errno == "EFAULT"
        return
    assert page.shows(event.place) == 0
    event.enable()
    assert page.shows(event.place) == 1


@case
@variants(
    ("read-only", os.O_RDONLY, True),
    ("private", os.O_RDONLY, False),
    ("read-write", os.O_RDWR, True),
)
def test_unwritable(ue: UserEvents, opened: int, shared: bool) -> None:
    """A store to a read-only mapping faults."""
    page = map_page(ue.process, opened=opened, shared=shared)
    assert page.store(0, b"\xff").errno == "EFAULT"
    assert page.load(0, 1).data == b"\0"


@case(spec="mm/mmap.c:do_mmap", tier="full", isolation="events")
def test_mapped_by_anybody(ue: UserEvents) -> None:
    """A process without capabilities that has a descriptor can map, read and register."""
    before = map_page(ue.process)
    data = ue.open_data()
    ue.process.setuid(1000)
    seen, address = ue.process.map_status(before.slot, length=length_of(ue.process))
    assert seen.errno == ""
    place = data.register(ue.name()).place
    enabled = ue.tracefs.enable(ue.name())
    # In the first kernels an event has a directory only if its creator may look it up.
    assert enabled.errno == ue.dated("events_made_as_root", since="", before="ENOENT")
    shown = ue.dated("events_made_as_root", since=1, before=0)
    assert replace(before, address=address).shows(place) == shown


@case(spec="arch/x86/kernel/sys_x86_64.c:mmap", doc=OFFSETS, tier="full")
@variants(1, 8, 2048, 4097)
def test_offset_misaligned(ue: UserEvents, offset: int) -> None:
    """An offset that is not a multiple of the page size is EINVAL."""
    assert mapping_error(ue.process, length=length_of(ue.process), offset=offset) == "EINVAL"


@case(spec="mm/mmap.c:do_mmap")
@variants(
    ("write-through-read-only", os.O_RDONLY, READ_WRITE, True),
    ("only-write-through-read-only", os.O_RDONLY, PROT_WRITE, True),
    ("write-only", os.O_WRONLY, PROT_READ, True),
    ("write-only-private", os.O_WRONLY, PROT_READ, False),
    ("write-only-to-write", os.O_WRONLY, PROT_WRITE, True),
    ("write-only-for-nothing", os.O_WRONLY, PROT_NONE, True),
)
def test_refused(ue: UserEvents, opened: int, protection: int, shared: bool) -> None:
    """A writable mapping needs a writable descriptor, any mapping a readable one: EACCES."""
    assert error_of(ue, opened, protection, shared) == "EACCES"


@case(spec="user_data_fops", profiles="5.18..", tier="full")
@doc("Status: programs map user_events_status; silent about mapping user_events_data")
@variants(
    ("read", os.O_RDWR, {}, "ENODEV"),
    ("read-only", os.O_RDONLY, {}, "ENODEV"),
    ("write", os.O_RDWR, {"protection": READ_WRITE}, "ENODEV"),
    ("private", os.O_RDONLY, {"protection": READ_WRITE, "shared": False}, "ENODEV"),
    ("any-length", os.O_RDWR, {"length": 12288}, "ENODEV"),
    ("any-offset", os.O_RDWR, {"offset": 4096}, "ENODEV"),
    ("refused-first", os.O_RDONLY, {"protection": READ_WRITE}, "EACCES"),
    ("write-only-first", os.O_WRONLY, {"protection": PROT_WRITE}, "EACCES"),
    ("misaligned-first", os.O_RDWR, {"offset": 1}, "EINVAL"),
    ("empty-first", os.O_RDWR, {"length": 0}, "EINVAL"),
)
def test_not_of_the_data_file(ue: UserEvents, mode: int, other: dict[str, Any], errno: str) -> None:
    """user_events_data cannot be mapped: ENODEV, after errors of the request itself."""
    assert mapping_error(ue.process, file=DATA, opened=mode, **other) == errno


@case(spec="mm/mmap.c:do_mmap, mmap_region", tier="full")
@doc("Status: silent about which of two errors is reported")
@variants(
    ("write-only-before-length", os.O_WRONLY, {"length": 12288}, "EACCES"),
    ("rights-before-length", os.O_RDONLY, {"length": 12288, "protection": READ_WRITE}, "EACCES"),
    ("misaligned-before-write-only", os.O_WRONLY, {"offset": 8}, "EINVAL"),
    ("misaligned-before-rights", os.O_RDONLY, {"offset": 8, "protection": READ_WRITE}, "EINVAL"),
    ("empty-before-write-only", os.O_WRONLY, {"length": 0}, "EINVAL"),
    ("empty-before-rights", os.O_RDONLY, {"length": 0, "protection": READ_WRITE}, "EINVAL"),
)
def test_order_of_mistakes(ue: UserEvents, mode: int, other: dict[str, Any], errno: str) -> None:
    """Offset and zero length are checked before access, and access before the length."""
    assert mapping_error(ue.process, opened=mode, **other) == errno


@case(level="behaviour")
@doc("Status: the size of the file is a page, or a multiple of it; silent about other lengths")
def test_refused_leaves_nothing(ue: UserEvents) -> None:
    """A mapping rejected for its length leaves no memory mapped."""
    page = map_page(ue.process)
    seen, address = ue.process.map_status(page.slot, length=12288)
    assert seen.errno == "EINVAL"
    assert ue.process.load(address, 1).errno == "EFAULT"
    assert page.load(0, 1).data == b"\0"
