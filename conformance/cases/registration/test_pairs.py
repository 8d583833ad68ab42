"""DIAG_IOCSREG with each pair of errors."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from conformance.abi.uapi import DIAG_IOCSREG, USER_REG
from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.cases.support.registration import PERSIST, UNKNOWN_FLAG
from conformance.client.addresses import KERNEL_HALF, PAGE
from conformance.client.tracefs import MAXIMUM

DOC = "Registering: nothing is said about which of two errors is reported"
NEEDS = "persist text_flags_refused arguments_matched"
case = surface("registration", doc=DOC, level="detail", profiles="6.4..", needs=NEEDS)

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
    ("unwritable", "EFAULT"),
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


class Request(Struct, frozen=True):
    """A registration: by default a correct one, of an event that does not exist."""

    size: int = 28
    tail: bytes = b""
    cut_off: int = 0
    flags: int = 0
    persist: int = 0
    word_size: int = 4
    bit: int = 0
    offset: int = 8
    half: int = 0
    taken: bool = False
    mapped: bool = True
    privileged: bool = True
    readable: bool = True
    name: str = "f"
    text_flags: str = ""
    fields: str = "u32 a"
    length: int = 0
    other_fields: bool = False


# What each error changes.  Of two errors that change the same, the first one counts.
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "too-big": {"size": 4097},
    "too-small": {"size": 27},
    "tail": {"size": 32, "tail": b"\0\0\0\1"},
    "cut-off": {"cut_off": 1},
    "flags": {"flags": UNKNOWN_FLAG},
    "word-size": {"word_size": 3},
    "alignment": {"word_size": 8, "offset": 4},
    "bit": {"bit": 40},
    "kernel-half": {"half": KERNEL_HALF},
    "taken": {"taken": True},
    "string-unreadable": {"readable": False},
    "string-too-long": {"length": 512},
    "text-flags": {"text_flags": ":x"},
    "permission": {"persist": PERSIST, "privileged": False},
    "other-fields": {"name": "e", "other_fields": True},
    "bad-field": {"fields": "long a"},
    "maximum": {},
    "unwritable": {"mapped": False},
}


def register(ue: UserEvents, first: str, second: str) -> str:
    """Errno of a registration with two errors."""
    request = Request(**{**CHANGES[second], **CHANGES[first]})
    process, data = ue.process, ue.open_data()
    page = process.map()
    address = page + request.offset
    process.store(page, bytes(16))
    if request.taken:
        word = process.word_at(address, 8 if request.bit else 4, value=None)
        data.register(ue.name("t"), word=word, bit=request.bit)
    if request.other_fields:
        ue.new_process().open_data().register(f"{ue.name('e')} u8 z")
    text = f"{ue.name(request.name)}{request.text_flags} {request.fields}".ljust(request.length)
    raw = USER_REG.pack(
        {
            "size": request.size,
            "flags": request.flags | request.persist,
            "enable_size": request.word_size,
            "enable_bit": request.bit,
            "enable_addr": request.half + address % PAGE if request.half else address,
            "name_args": process.place(text.encode() + b"\0") if request.readable else 0,
        }
    )
    place = process.place(raw[: len(raw) - request.cut_off] + request.tail)
    if not request.mapped:
        process.unmap(page)
    if not request.privileged:
        process.setuid()
    return data.ioctl(DIAG_IOCSREG, place).errno


def created(ue: UserEvents, *errors: str) -> str:
    """The lines of dynamic_events for the events that the errors need."""
    taken = f"u:{ue.name('t')}\n" if "taken" in errors else ""
    return taken + (f"u:{ue.name('e')} u8 z\n" if "other-fields" in errors else "")


@case(spec="user_reg_get, user_events_ioctl_reg, user_event_parse")
@variants(pairs(ORDER, APART, without="maximum"))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and no event is created."""
    assert register(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == created(ue, first, second)


@case(spec="user_reg_get, user_events_ioctl_reg, user_event_parse", tier="full", isolation="global")
@variants(pairs(ORDER, APART, among="maximum"))
def test_pairs_at_the_maximum(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """The limit of events is checked after everything but the word."""
    # There is room for the events that the other error needs.
    there = "1\n" if {"taken", "other-fields"} & {first, second} else "0\n"
    ue.tracefs.write(MAXIMUM, there)
    assert register(ue, first, second) == errno
    assert ue.tracefs.dynamic_events() == created(ue, first, second)
