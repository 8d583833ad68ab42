"""DIAG_IOCSUNREG: the structure, its size and its reserved members."""

from __future__ import annotations

import mmap

from conformance.abi.uapi import DIAG_IOCSUNREG, USER_UNREG
from conformance.cases.case import surface, variants
from conformance.client.user_events import UserEvents

case = surface(
    "unregister",
    spec="trace_events_user.c:user_unreg_get",
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering: size is that of struct "
    "user_unreg",
    profiles="6.4..",
)


@case(tier="full")
@variants(
    ("0", 0, b"", "EINVAL"),
    ("4", 4, b"", "EINVAL"),
    ("15", 15, b"", "EINVAL"),
    ("16", 16, b"", ""),
    ("16-not-looking-behind", 16, b"\x01", ""),
    ("17-zero", 17, b"\0", ""),
    ("17-nonzero", 17, b"\x01", "E2BIG"),
    ("4096-zero", 4096, bytes(4080), ""),
    ("4096-nonzero-at-the-end", 4096, bytes(4079) + b"\x01", "E2BIG"),
    ("4097-zero", 4097, bytes(4081), "E2BIG"),
    ("huge", 0xFFFF_FFFF, b"", "E2BIG"),
)
def test_size(ue: UserEvents, size: int, tail: bytes, errno: str) -> None:
    """The size is 16 bytes up to a page; bytes past the known members must be zero."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    assert data.unregister(word, struct_size=size, tail=tail).errno == errno
    assert data.register(ue.name(), word=word).errno == ("EADDRINUSE" if errno else "")


@case
@variants({"null": 0, "first-page": 0x300, "kernel-half": 0xFFFF_8880_0000_0000})
def test_struct_unreadable(ue: UserEvents, address: int) -> None:
    """A structure that cannot be read is EFAULT."""
    data = ue.event().data
    assert data.ioctl(DIAG_IOCSUNREG, address).errno == "EFAULT"


@case(tier="full")
def test_struct_read_only(ue: UserEvents) -> None:
    """The structure is only read: it may lie in read-only memory."""
    event = ue.event()
    at = ue.process.map()
    ue.process.store(at, USER_UNREG.pack({"size": 16, "disable_addr": event.word.address}))
    ue.process.protect(at, mmap.PROT_READ)
    assert event.data.ioctl(DIAG_IOCSUNREG, at).value == 0


@case(
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering: the reserved members are to "
    "be zero"
)
@variants(
    ("byte-1", 1, 0), ("short-1", 0, 1), ("byte-80", 0x80, 0), ("short-8000", 0, 0x8000), quick=2
)
def test_reserved(ue: UserEvents, reserved: int, reserved2: int) -> None:
    """A set bit in a reserved member is EINVAL, and the word stays registered."""
    event = ue.event()
    assert (
        event.data.unregister(event.word, reserved=reserved, reserved2=reserved2).errno == "EINVAL"
    )
    assert event.unregister().errno == ""


@case(
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering: nothing is said about two "
    "mistakes at once"
)
@variants(
    ("too-big-before-unreadable", 4097, 0, 4, "E2BIG"),
    ("too-small-before-unreadable", 15, 0, 4, "EINVAL"),
    ("too-big-before-reserved", 4097, 1, 16, "E2BIG"),
    ("reserved-before-unknown", 16, 1, 16, "EINVAL"),
    ("unreadable-before-unknown", 16, 0, 15, "EFAULT"),
)
def test_order(ue: UserEvents, size: int, reserved: int, present: int, errno: str) -> None:
    """Checks are made in this order: size, readability, reserved members, known word."""
    raw = USER_UNREG.pack({"size": size, "__reserved": reserved, "disable_addr": 0x1000})
    data = ue.open_data()
    assert data.ioctl(DIAG_IOCSUNREG, ue.process.place(raw[:present])).errno == errno


@case
def test_tail_before_unknown(ue: UserEvents) -> None:
    """Bytes that must be zero are checked before the word is looked up: E2BIG."""
    data = ue.open_data()
    word = ue.process.word()
    assert data.unregister(word, struct_size=24, tail=bytes(7) + b"\x01").errno == "E2BIG"
    assert data.unregister(word, struct_size=24, tail=bytes(8)).errno == "ENOENT"
