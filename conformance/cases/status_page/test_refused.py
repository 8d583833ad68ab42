"""Mappings of user_events_status that are rejected, and the order of checks."""

from __future__ import annotations

import os
from typing import Any

from conformance.cases.case import surface, variants
from conformance.cases.support.status_page import (
    PROT_READ,
    PROT_WRITE,
    READ_WRITE,
    length_of,
    map_page,
    mapping_error,
)
from conformance.client.addresses import PROT_NONE
from conformance.client.tracefs import DATA
from conformance.client.user_events import UserEvents

case = surface(
    "status_page",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v5.19 and @v6.1: Status",
    profiles="5.18..6.3",
    isolation="none",
)


@case(
    spec="arch/x86/kernel/sys_x86_64.c:mmap",
    doc="the size of user_events_status is a page, or a multiple of it",
    tier="full",
)
@variants(1, 8, 2048, 4097)
def test_offset_misaligned(ue: UserEvents, offset: int) -> None:
    """An offset that is not a multiple of the page size is EINVAL."""
    found = mapping_error(ue.process, length=length_of(ue.process), offset=offset)
    assert found == "EINVAL"


@case(spec="mm/mmap.c:do_mmap", doc="nothing is said about the rights of a mapping")
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
    found = mapping_error(
        ue.process,
        opened=opened,
        length=length_of(ue.process),
        protection=protection,
        shared=shared,
    )
    assert found == "EACCES"


# The data file


@case(
    spec="user_data_fops",
    doc="programs map user_events_status to see which events are enabled; user_events_data is "
    "for registering "
    "and writing",
    profiles="5.18..",
    tier="full",
)
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
def test_not_of_the_data_file(
    ue: UserEvents, opened: int, members: dict[str, Any], errno: str
) -> None:
    """user_events_data cannot be mapped: ENODEV, after errors of the request itself."""
    assert mapping_error(ue.process, file=DATA, opened=opened, **members) == errno


# Two errors


@case(
    spec="mm/mmap.c:do_mmap, mmap_region",
    doc="nothing is said about the rights of a mapping",
    tier="full",
)
@variants(
    ("write-only-before-length", os.O_WRONLY, {"length": 12288}, "EACCES"),
    ("rights-before-length", os.O_RDONLY, {"length": 12288, "protection": READ_WRITE}, "EACCES"),
    ("misaligned-before-write-only", os.O_WRONLY, {"offset": 8}, "EINVAL"),
    ("misaligned-before-rights", os.O_RDONLY, {"offset": 8, "protection": READ_WRITE}, "EINVAL"),
    ("empty-before-write-only", os.O_WRONLY, {"length": 0}, "EINVAL"),
    ("empty-before-rights", os.O_RDONLY, {"length": 0, "protection": READ_WRITE}, "EINVAL"),
)
def test_order_of_mistakes(
    ue: UserEvents, opened: int, members: dict[str, Any], errno: str
) -> None:
    """Offset and zero length are checked before access, and access before the length."""
    assert mapping_error(ue.process, opened=opened, **members) == errno


@case(spec="user_status_mmap", doc="the size of user_events_status is a page, or a multiple of it")
def test_refused_leaves_nothing(ue: UserEvents) -> None:
    """A mapping rejected for its length leaves no memory mapped."""
    page = map_page(ue.process)
    seen, address = ue.process.map_status(page.slot, length=12288)
    assert seen.errno == "EINVAL"
    assert ue.process.load(address, 1).errno == "EFAULT"
    assert page.load(0, 1).data == b"\0"
