"""DIAG_IOCSUNREG with each pair of errors."""

from __future__ import annotations

from conformance.abi.uapi import DIAG_IOCSUNREG, USER_UNREG
from conformance.cases.case import surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.client.data_file import DataFile
from conformance.client.user_events import UserEvents

case = surface(
    "unregister",
    spec="trace_events_user.c:user_unreg_get, user_events_ioctl_unreg",
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering: nothing is said about which "
    "of two errors is reported",
    profiles="6.4..",
)


# In the order in which the kernel checks.  Of a structure that cannot be copied whole, the reserved
# members that were copied are checked.
ORDER = (
    ("too-big", "E2BIG"),
    ("too-small", "EINVAL"),
    ("tail", "E2BIG"),
    ("reserved", "EINVAL"),
    ("cut-off", "EFAULT"),
    ("unknown", "ENOENT"),
    ("unwritable", "EFAULT"),
)
APART = (("too-small", "tail"), ("tail", "cut-off"))


def unregister(ue: UserEvents, data: DataFile, *mistakes: str) -> tuple[str, bool]:
    """Errno of an unregistration with the given errors, and whether the word was unregistered."""
    process = ue.process
    page = process.map()
    process.store(page, bytes(16))
    word = process.word_at(page, value=None)
    data.register(ue.name(), word=word)
    size = 16
    if "too-big" in mistakes:
        size = 4097
    elif "too-small" in mistakes:
        size = 15
    elif "tail" in mistakes:
        size = 24
    members = {"size": size, "disable_addr": page + (4 if "unknown" in mistakes else 0)}
    raw = USER_UNREG.pack(members | ({"__reserved": 1} if "reserved" in mistakes else {}))
    if "cut-off" in mistakes:
        raw = raw[:-1]
    place = process.place(raw + (bytes(7) + b"\1" if "tail" in mistakes else b""))
    if "unwritable" in mistakes:
        process.unmap(page)
    errno = data.ioctl(DIAG_IOCSUNREG, place).errno
    return errno, data.unregister(word).errno == "ENOENT"


@case
@variants(pairs(ORDER, APART))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and the word stays registered."""
    assert unregister(ue, ue.open_data(), first, second) == (errno, False)


@case
def test_unwritable_alone(ue: UserEvents) -> None:
    """An unwritable word is EFAULT only if all checks pass, and it is unregistered."""
    assert unregister(ue, ue.open_data(), "unwritable") == ("EFAULT", True)
