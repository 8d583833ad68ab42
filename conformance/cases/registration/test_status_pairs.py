"""DIAG_IOCSREG of 5.18 to 6.3 with each pair of errors."""

from __future__ import annotations

import struct

from conformance.abi.uapi import DIAG_IOCSREG
from conformance.cases.case import surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.cases.support.status_page_registration import over, reg_of
from conformance.client.user_events import UserEvents

case = surface(
    "registration",
    spec="trace_events_user.c:user_reg_get, user_events_ioctl_reg, user_event_parse",
    doc="Documentation/trace/user_events.rst@v5.19 and @v6.1: Registering: nothing is said about "
    "which of two errors is reported",
)


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


def register(ue: UserEvents, *mistakes: str) -> str:
    """Errno of a registration with the given errors."""
    text = f"{ue.name()} {'long' if 'bad-field' in mistakes else 'u32'} a"
    raw = reg_of(ue, text.ljust(512) if "string-too-long" in mistakes else text)
    # The string pointer is at offset 8, in the packed structure at 4.
    pointer = len(raw) - 16
    if "string-unreadable" in mistakes:
        raw = over(raw, pointer, bytes(8))
    size = len(raw)
    if "too-big" in mistakes:
        size = 4097
    elif "too-small" in mistakes:
        size -= 1
    elif "tail" in mistakes:
        size += 4
    raw = over(raw, 0, struct.pack("<I", size))
    if "cut-off" in mistakes:
        # Nothing is mapped past the size that even a short structure has.
        raw = raw[:pointer]
    place = ue.process.place(raw + (b"\0\0\0\1" if "tail" in mistakes else b""))
    return ue.open_data().ioctl(DIAG_IOCSREG, place).errno


@case(profiles="6.1..6.3")
@variants(pairs(ORDER, APART))
def test_status_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and no event is created."""
    assert register(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == ""


@case(profiles="5.18..6.0")
@variants(pairs(ORDER, APART, without="too-small"))
def test_byte_status_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, where no structure is too small."""
    assert register(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == ""
