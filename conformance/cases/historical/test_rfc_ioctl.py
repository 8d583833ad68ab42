"""Other ioctls of the first version, and files and numbers that it does not have."""

from __future__ import annotations

import os

from conformance.cases.case import surface, variants
from conformance.cases.support.rfc_v1 import bound
from conformance.client.addresses import KERNEL_HALF
from conformance.client.data_file import DataFile
from conformance.client.rfc_v1 import local_offset, register
from conformance.client.tracefs import MMAP, STATUS
from conformance.client.user_events import UserEvents

case = surface(
    "rfc",
    spec="trace_events_user.c:user_events_ioctl",
    doc="trace_events_user.c@rfc-v1: DIAG_IOCQLOCOFFSET returns the offset that data locations "
    "need",
    profiles="rfc-v1",
)


# Numbers that the patch does not define.
UNKNOWN = {
    "reg-of-releases": 0xC0082A00,
    "unreg-of-releases": 0x40082A02,
    "next": 0x2A03,
    "reg-of-32-bits": 0x40042A00,
    "offset-with-a-size": 0x80082A02,
    "zero": 0,
}


@case(isolation="none")
@variants(("plain", os.O_RDWR, 0), ("wild", os.O_RDONLY, KERNEL_HALF))
def test_local_offset(ue: UserEvents, opened: int, argument: int) -> None:
    """The third ioctl, which has no argument, returns the size of the common fields: 8."""
    assert local_offset(ue.open_data(opened), argument).value == 8


@case
def test_local_offset_of_event(ue: UserEvents) -> None:
    """It returns the same on a descriptor bound to an event, as in `format`."""
    data = bound(ue, ue.name() + ";u8\ta\t1\t0")
    assert local_offset(data).value == 8
    assert "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n" in ue.tracefs.format(ue.name())


@case(doc="trace_events_user.c@rfc-v1: three ioctls")
@variants(UNKNOWN)
def test_unknown_ioctl(ue: UserEvents, number: int) -> None:
    """Any other ioctl is ENOTTY, whatever its argument points to."""
    text = ue.process.place(ue.name().encode() + b"\0")
    assert ue.open_data().ioctl(number, text).errno == "ENOTTY"
    assert ue.tracefs.definitions() == ""


@case(
    spec="trace_events_user.c:user_events_mmap_fops",
    doc="trace_events_user.c@rfc-v1, message of the patch: ioctls are issued to user_events_data",
)
def test_ioctl_of_mmap_file(ue: UserEvents) -> None:
    """The file that the page is mapped from supports none of the ioctls: ENOTTY."""
    _, slot = ue.process.open(MMAP, os.O_RDWR)
    page = DataFile(ue.process, slot)
    assert register(page, ue.name()).errno == "ENOTTY"
    assert local_offset(page).errno == "ENOTTY"
    assert page.delete(ue.name()).errno == "ENOTTY"


@case(
    spec="trace_events_user.c:create_user_tracefs",
    doc="trace_events_user.c@rfc-v1, message of the patch: two files are added; the review asked "
    "for one that tells who listens",
    isolation="none",
)
def test_no_status_file(ue: UserEvents) -> None:
    """There is no user_events_status: it came after the review."""
    assert ue.tracefs.read(STATUS).errno == "ENOENT"
    assert ue.process.open(STATUS)[0].errno == "ENOENT"
