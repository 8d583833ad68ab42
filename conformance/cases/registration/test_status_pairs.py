"""DIAG_IOCSREG of 5.18 to 6.3 with two errors: the first check decides."""

import struct
from collections.abc import Mapping

from conformance.abi.uapi import DIAG_IOCSREG
from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.cases.support.registration import error_of
from conformance.cases.support.status_page_registration import ioctl_error, overlay, reg_of

DOC = "@v5.19 and @v6.1: Registering: nothing is said about which of two errors is reported"
case = surface("registration", doc=DOC, level="detail", profiles="5.18..6.3")

# In the order in which the kernel checks.
ORDER = (
    ("too-big", "E2BIG"),
    ("too-small", "EINVAL"),
    ("tail", "E2BIG"),
    ("cut-off", "EFAULT"),
    ("string-unreadable", "EFAULT"),
    ("string-too-long", "EINVAL"),
    ("bad-field", "EINVAL"),
)
APART = (
    ("too-small", "tail"),
    ("tail", "cut-off"),
    ("string-unreadable", "string-too-long"),
    ("string-unreadable", "bad-field"),
)


def register(ue: UserEvents, *errors: str) -> str:
    """Errno of a registration with the given errors."""
    text = f"{ue.name()} {'long' if 'bad-field' in errors else 'u32'} a"
    raw = reg_of(ue, text.ljust(512) if "string-too-long" in errors else text)
    # The string pointer is at offset 8, in the packed structure at 4.
    pointer = len(raw) - 16
    if "string-unreadable" in errors:
        raw = overlay(raw, pointer, bytes(8))
    size = len(raw)
    if "too-big" in errors:
        size = 4097
    elif "too-small" in errors:
        size -= 1
    elif "tail" in errors:
        size += 4
    raw = overlay(raw, 0, struct.pack("<I", size))
    if "cut-off" in errors:
        # Nothing is mapped past the size that even a short structure has.
        raw = raw[:pointer]
    place = ue.process.place(raw + (b"\0\0\0\1" if "tail" in errors else b""))
    return ue.open_data().ioctl(DIAG_IOCSREG, place).errno


@case(spec="user_reg_get, user_events_ioctl_reg, user_event_parse", profiles="6.1..6.3")
@variants(pairs(ORDER, APART))
def test_status_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and no event is created."""
    assert register(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_reg_get, user_events_ioctl_reg, user_event_parse", profiles="5.18..6.0")
@variants(pairs(ORDER, APART, without="too-small"))
def test_byte_status_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, where no structure is too small."""
    assert register(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_reg_get")
@variants(
    ("too-big-before-unreadable", 4097, 4, {"byte-status": "E2BIG", "bit-status": "E2BIG"}),
    ("too-small-before-unreadable", 19, 4, {"byte-status": "EFAULT", "bit-status": "EINVAL"}),
    ("none-before-unreadable", 0, 4, {"byte-status": "EFAULT", "bit-status": "EINVAL"}),
    ("unreadable-size", 4097, 3, {"byte-status": "EFAULT", "bit-status": "EFAULT"}),
)
def test_status_order_size(ue: UserEvents, size: int, given: int, errno: Mapping[str, str]) -> None:
    """The size is checked before the rest of the structure is read."""
    raw = overlay(reg_of(ue, ue.name()), 0, struct.pack("<I", size))
    assert ioctl_error(ue.open_data(), raw[:given]) == errno[ue.profile.generation]


@case(spec="user_events_ioctl_reg")
@variants(
    ("too-big", 4097, {"byte-status": "E2BIG", "bit-status": "E2BIG"}),
    ("too-small", 19, {"byte-status": "EFAULT", "bit-status": "EINVAL"}),
)
def test_status_order_string(ue: UserEvents, size: int, errno: Mapping[str, str]) -> None:
    """The size is checked before a string that cannot be read."""
    seen = ue.open_data().register(ue.name(), struct_size=size, name_args=0)
    assert error_of(seen) == errno[ue.profile.generation]


@case(spec="user_events_ioctl_reg")
@variants(
    ("string-too-long", "e u32 a;" + " " * 600, "EINVAL"),
    ("existing-before-bad-field", "e long a", ""),
    ("bad-field", "f long a", "EINVAL"),
)
def test_status_order_name(ue: UserEvents, definition: str, errno: str) -> None:
    """Order of checks: length of the string, the name, the fields."""
    assert ue.event("u8 z").data.register(ue.name(definition)).errno == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')} u8 z\n"
