"""DIAG_IOCSREG with each pair of errors."""

from __future__ import annotations

from conformance.abi.uapi import DIAG_IOCSREG, USER_REG
from conformance.cases.case import surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.cases.support.registration import KERNEL_HALF, PERSIST, UNKNOWN_FLAG
from conformance.client.addresses import PAGE
from conformance.client.tracefs import MAXIMUM
from conformance.client.user_events import UserEvents

case = surface(
    "registration",
    spec="trace_events_user.c:user_reg_get, user_events_ioctl_reg, user_event_parse",
    doc="Documentation/trace/user_events.rst@v6.12: Registering: nothing is said about which of "
    "two errors is reported",
    profiles="6.4..",
    needs="persist text_flags_refused arguments_matched",
)


# In the order in which the kernel checks.
ORDER = (
    ("too-big", "E2BIG"),
    ("too-small", "EINVAL"),
    ("tail", "E2BIG"),
    ("cut-off", "EFAULT"),
    ("flags", "EINVAL"),
    ("word-size", "EINVAL"),
    ("alignment", "EINVAL"),
    ("bit", "EINVAL"),
    ("kernel-half", "EFAULT"),
    ("taken", "EADDRINUSE"),
    ("string-unreadable", "EFAULT"),
    ("string-too-long", "EINVAL"),
    ("text-flags", "EINVAL"),
    ("permission", "EPERM"),
    ("other-fields", "EADDRINUSE"),
    ("bad-field", "EINVAL"),
    ("maximum", "EMFILE"),
    ("unwritable", "ENOMEM"),
)
# Pairs that exclude each other: bytes present and absent, one address with two values.
APART = (
    ("too-small", "tail"),
    ("tail", "cut-off"),
    ("kernel-half", "taken"),
    ("kernel-half", "unwritable"),
    ("string-unreadable", "string-too-long"),
    ("string-unreadable", "text-flags"),
    ("string-unreadable", "other-fields"),
    ("string-unreadable", "bad-field"),
)


def register(ue: UserEvents, *mistakes: str) -> str:
    """Errno of a registration with the given errors."""
    process, data = ue.process, ue.open_data()
    page = process.map()
    address = page + (4 if "alignment" in mistakes else 8)
    process.store(page, bytes(16))
    bit = 40 if "bit" in mistakes else 0
    if "taken" in mistakes:
        word = process.word_at(address, 8 if bit else 4, value=None)
        data.register(ue.name("t"), word=word, bit=bit)
    if "other-fields" in mistakes:
        ue.new_process().open_data().register(f"{ue.name('e')} u8 z")
    raw = USER_REG.pack(
        {
            "size": size_of(mistakes),
            "flags": (UNKNOWN_FLAG if "flags" in mistakes else 0)
            | (PERSIST if "permission" in mistakes else 0),
            "enable_size": word_size_of(mistakes),
            "enable_bit": bit,
            "enable_addr": KERNEL_HALF + address % PAGE if "kernel-half" in mistakes else address,
            "name_args": 0
            if "string-unreadable" in mistakes
            else process.place(text_of(ue, mistakes).encode() + b"\0"),
        }
    )
    if "cut-off" in mistakes:
        raw = raw[:-1]
    place = process.place(raw + (b"\0\0\0\1" if "tail" in mistakes else b""))
    if "unwritable" in mistakes:
        process.unmap(page)
    if "permission" in mistakes:
        process.setuid()
    return data.ioctl(DIAG_IOCSREG, place).errno


def size_of(mistakes: tuple[str, ...]) -> int:
    """The size member of the structure."""
    if "too-big" in mistakes:
        return 4097
    if "too-small" in mistakes:
        return 27
    return 32 if "tail" in mistakes else 28


def word_size_of(mistakes: tuple[str, ...]) -> int:
    """The enable_size member of the structure."""
    if "word-size" in mistakes:
        return 3
    return 8 if "alignment" in mistakes else 4


def text_of(ue: UserEvents, mistakes: tuple[str, ...]) -> str:
    """The registration string."""
    name = ue.name("e" if "other-fields" in mistakes else "f")
    flags = ":x" if "text-flags" in mistakes else ""
    fields = " long a" if "bad-field" in mistakes else " u32 a"
    text = f"{name}{flags}{fields}"
    return text.ljust(512) if "string-too-long" in mistakes else text


def made(ue: UserEvents, *mistakes: str) -> str:
    """The lines of dynamic_events for the events that the errors are about."""
    taken = f"u:{ue.name('t')}\n" if "taken" in mistakes else ""
    return taken + (f"u:{ue.name('e')} u8 z\n" if "other-fields" in mistakes else "")


@case
@variants(pairs(ORDER, APART, without="maximum"))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and no event is created."""
    assert register(ue, first, second) == errno
    shown = ue.tracefs.dynamic_events()
    assert shown == made(ue, first, second)


@case(tier="full", isolation="global")
@variants(pairs(ORDER, APART, among="maximum"))
def test_pairs_at_the_maximum(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """The limit of events is checked after everything but the word."""
    # There is room for the events that the other error needs.
    there = "1\n" if {"taken", "other-fields"} & {first, second} else "0\n"
    ue.tracefs.write(MAXIMUM, there)
    assert register(ue, first, second) == errno
    shown = ue.tracefs.dynamic_events()
    assert shown == made(ue, first, second)
    ue.tracefs.write(MAXIMUM, "32768\n")
