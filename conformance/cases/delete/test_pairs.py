"""DIAG_IOCSDEL with each pair of errors."""

from __future__ import annotations

from conformance.abi.uapi import DIAG_IOCSDEL
from conformance.cases.case import surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.client.user_events import UserEvents

case = surface(
    "delete",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12",
    profiles="6.4..",
    needs="persist",
)


# In the order in which the kernel checks.
ORDER = (
    ("unreadable", "EFAULT"),
    ("too-long", "EINVAL"),
    ("unknown", "ENOENT"),
    ("busy", "EBUSY"),
    ("permission", "EPERM"),
)
# There is one name, or none.
APART = (
    ("unreadable", "too-long"),
    ("unreadable", "unknown"),
    ("unreadable", "busy"),
    ("too-long", "busy"),
    ("unknown", "busy"),
)


@case(
    spec="user_events_ioctl_del, delete_user_event",
    doc="Deleting: does not say which of two errors is reported",
)
@variants(pairs(ORDER, APART))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and the event stays."""
    mistakes = (first, second)
    process, data = ue.process, ue.open_data()
    ue.tracefs.command(f"u:{ue.name()}\n")
    if "busy" in mistakes:
        ue.tracefs.enable(ue.name())
    name = ue.name("f" if "unknown" in mistakes else "e").encode()
    text = name.ljust(512, b"x") if "too-long" in mistakes else name
    # The unreadable byte replaces the end of the name.
    place = process.place(text + (b"" if "unreadable" in mistakes else b"\0"))
    if "permission" in mistakes:
        process.setuid()
    assert data.ioctl(DIAG_IOCSDEL, place).errno == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"
