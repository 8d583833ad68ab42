"""DIAG_IOCSDEL: the argument is a NUL-terminated event name."""

from __future__ import annotations

import mmap

from conformance.abi.uapi import DIAG_IOCSDEL
from conformance.cases.case import surface, variants
from conformance.cases.support.registration import abandoned
from conformance.client.addresses import PROT_NONE
from conformance.client.user_events import UserEvents

case = surface(
    "delete",
    spec="mm/util.c:strndup_user",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: the argument is a string, the name "
    "of the event",
)


@case(spec="trace_events_user.c:delete_user_event")
@variants(
    ("never-registered", "{name}x"),
    ("cut-short", "{stem}"),
    ("with-prefix", "u:{name}"),
    ("with-system", "user_events/{name}"),
    ("with-arguments", "{name} u32 a"),
    ("with-space", "{name} "),
    ("with-colon", "{name}:"),
    ("with-id", "{name}.0"),
    ("upper-case", "{upper}"),
    ("empty", ""),
)
def test_unknown(ue: UserEvents, name: str) -> None:
    """Only the exact name of an event matches; anything else is ENOENT."""
    data = ue.open_data()
    event = ue.name("event")
    data.register(f"{event} u32 a")
    wrong = name.format(name=event, stem=event[:-1], upper=event.upper())
    assert data.delete(wrong).errno == "ENOENT"
    assert ue.tracefs.status() == ue.status_line(1, event)


@case
@variants({"null": 0, "kernel-half": 0xFFFF_8880_0000_0000, "first-page": 0x200})
def test_string_unreadable(ue: UserEvents, address: int) -> None:
    """A name at an unreadable address is EFAULT."""
    assert ue.open_data().ioctl(DIAG_IOCSDEL, address).errno == "EFAULT"


@case
@variants(("none", PROT_NONE, "EFAULT"), ("read", mmap.PROT_READ, "EBUSY"))
def test_string_protected(ue: UserEvents, protection: int, errno: str) -> None:
    """The name only needs to be readable."""
    data = ue.event().data
    at = ue.process.map()
    ue.process.store(at, ue.name().encode() + b"\0")
    ue.process.protect(at, protection)
    assert data.ioctl(DIAG_IOCSDEL, at).errno == errno


@case
@variants(
    ("terminated", 30, b"\0", "ENOENT"),
    ("30", 30, b"", "EFAULT"),
    ("511", 511, b"", "EFAULT"),
    ("512", 512, b"", "EINVAL"),
)
def test_string_cut_off(ue: UserEvents, length: int, end: bytes, errno: str) -> None:
    """A name that runs into unmapped memory is EFAULT; past 512 bytes it is too long."""
    at = ue.process.place(b"x" * length + end)
    assert ue.open_data().ioctl(DIAG_IOCSDEL, at).errno == errno


@case
@variants((511, "ENOENT"), (512, "EINVAL"))
def test_string_length(ue: UserEvents, length: int, errno: str) -> None:
    """A name has at most 511 characters; a longer one is EINVAL, not ENOENT."""
    assert ue.open_data().delete(ue.name().ljust(length, "x")).errno == errno


@case(needs="lasting_events", tier="full")
def test_longest_name(ue: UserEvents) -> None:
    """A name of 511 characters can be registered and deleted."""
    name = ue.name().ljust(511, "n")
    abandoned(ue, name)
    assert ue.tracefs.dynamic_events() == f"u:{name}\n"
    assert ue.open_data().delete(name, eventually=True).value == 0
