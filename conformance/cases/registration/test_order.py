"""DIAG_IOCSREG with two errors: the first check decides."""

from collections.abc import Mapping
from typing import Any

from conformance.abi.uapi import DIAG_IOCSREG
from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.cases.support.registration import (
    PERSIST,
    UNKNOWN_FLAG,
    error_of,
    packed_reg,
    unprivileged_data,
)
from conformance.client.addresses import KERNEL_HALF
from conformance.client.tracefs import MAXIMUM

# Members of struct user_reg that differ from a valid one.
Change = Mapping[str, Any]
DOC = "Registering: nothing is said about which of two errors is reported"
case = surface("registration", doc=DOC, level="detail", profiles="6.4..")


@case(spec="user_reg_get")
@variants(
    ("too-big-before-unreadable", 4097, 4, {}, "E2BIG"),
    ("too-small-before-unreadable", 27, 4, {}, "EINVAL"),
    ("too-big-before-flags", 4097, 28, {"flags": UNKNOWN_FLAG}, "E2BIG"),
    ("too-small-before-address", 27, 28, {"enable_addr": KERNEL_HALF}, "EINVAL"),
    ("unreadable-before-flags", 28, 27, {"flags": UNKNOWN_FLAG}, "EFAULT"),
    ("unreadable-before-word-size", 28, 24, {"enable_size": 3}, "EFAULT"),
    ("unreadable-before-bit", 28, 27, {"enable_bit": 32}, "EFAULT"),
)
def test_order_size(ue: UserEvents, size: int, present: int, members: Change, errno: str) -> None:
    """The size is checked before the structure is read, and reading before its members."""
    raw = packed_reg(ue, ue.process.word(), ue.name(), **{"size": size, **members})
    assert ue.open_data().ioctl(DIAG_IOCSREG, ue.process.place(raw[:present])).errno == errno


@case(spec="user_reg_get")
@variants(
    ("flags", {"flags": UNKNOWN_FLAG}),
    ("word-size", {"enable_size": 3}),
    ("address", {"enable_addr": KERNEL_HALF}),
    ("string", {"name_args": 0}),
)
def test_order_tail(ue: UserEvents, members: Change) -> None:
    """Bytes that must be zero are checked before any member: E2BIG."""
    seen = ue.open_data().register(ue.name(), struct_size=32, tail=b"\0\0\0\1", **members)
    assert error_of(seen) == "E2BIG"


@case(spec="user_reg_get")
@variants(
    ("flags-before-address", {"flags": UNKNOWN_FLAG, "enable_addr": KERNEL_HALF}, "EINVAL"),
    ("size-before-address", {"enable_size": 2, "enable_addr": KERNEL_HALF}, "EINVAL"),
    ("alignment-before-address", {"enable_addr": KERNEL_HALF + 2}, "EINVAL"),
    ("bit-before-address", {"bit": 32, "enable_addr": KERNEL_HALF}, "EINVAL"),
    ("flags-before-string", {"flags": UNKNOWN_FLAG, "name_args": 0}, "EINVAL"),
    ("bit-before-string", {"bit": 32, "name_args": 0}, "EINVAL"),
    ("bit-before-unwritable", {"bit": 32, "enable_addr": 0}, "EINVAL"),
)
def test_order_members(ue: UserEvents, members: Change, errno: str) -> None:
    """Flags, size, alignment and bit are checked before the address, the string and the word."""
    assert error_of(ue.open_data().register(ue.name(), **members)) == errno


@case(spec="user_reg_get")
def test_order_address_before_string(ue: UserEvents) -> None:
    """A kernel address is rejected before a string that is too long."""
    assert error_of(ue.open_data().register("x" * 512, enable_addr=KERNEL_HALF)) == "EFAULT"


@case(spec="user_events_ioctl_reg")
@variants(
    ("flags", 0, 0, {"flags": UNKNOWN_FLAG}),
    ("size", 0, 0, {"enable_size": 2}),
    ("alignment", 4, 0, {"enable_size": 8}),
    ("bit", 0, 40, {"bit": 40, "enable_size": 4}),
)
def test_order_members_before_taken(ue: UserEvents, offset: int, bit: int, members: Change) -> None:
    """Invalid members are rejected before a word in use: EINVAL."""
    data = ue.open_data()
    word = ue.process.word(8 if bit > 31 else 4, offset=offset)
    assert data.register(ue.name(), word=word, bit=bit).index == 0
    assert error_of(data.register(ue.name(), word=word, **{"bit": bit, **members})) == "EINVAL"


@case(spec="user_events_ioctl_reg")
@variants(
    ("string-unreadable", "f", {"name_args": 0}),
    ("string-too-long", "f" * 512, {}),
    ("text-flags", "f:x", {}),
    ("bad-field", "f long a", {}),
)
def test_order_taken_first(ue: UserEvents, definition: str, members: Change) -> None:
    """A word in use is rejected before the string is read: EADDRINUSE."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    assert error_of(data.register(ue.name(definition), word=word, **members)) == "EADDRINUSE"


@case(spec="user_events_ioctl_reg", needs="persist")
def test_order_taken_before_permission(ue: UserEvents) -> None:
    """A word in use is rejected before a flag without permission: EADDRINUSE."""
    data = unprivileged_data(ue)
    word = data.register(ue.name()).word
    assert error_of(data.register(ue.name("f"), word=word, flags=PERSIST)) == "EADDRINUSE"


@case(spec="user_events_ioctl_reg", tier="full", isolation="global")
def test_order_taken_before_maximum(ue: UserEvents) -> None:
    """A word in use is rejected before the limit of events: EADDRINUSE."""
    event = ue.event()
    ue.tracefs.write(MAXIMUM, "1\n")
    assert error_of(event.data.register(ue.name("f"), word=event.word)) == "EADDRINUSE"
    assert error_of(event.data.register(ue.name("f"))) == "EMFILE"


@case(spec="user_event_parse", needs="persist text_flags_refused", tier="full")
@variants(
    ("string-unreadable-first", "f", {"name_args": 0}, "EFAULT"),
    ("string-too-long-first", "f" * 512, {}, "EINVAL"),
    ("text-flags-first", "f:x", {}, "EINVAL"),
    ("before-other-fields", "e u32 a", {}, "EPERM"),
    ("before-bad-field", "f long a", {}, "EPERM"),
    ("before-unwritable", "f", {"enable_addr": 0}, "EPERM"),
)
def test_order_permission(ue: UserEvents, definition: str, members: Change, errno: str) -> None:
    """Permission is checked after the string is read, before it is compared or parsed."""
    data = unprivileged_data(ue)
    data.register(ue.name("e u8 z"))
    assert error_of(data.register(ue.name(definition), flags=PERSIST, **members)) == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')} u8 z\n"


@case(spec="user_event_parse", needs="persist", tier="full", isolation="global")
def test_order_permission_at_the_maximum(ue: UserEvents) -> None:
    """Permission is checked before the limit of events: EPERM."""
    data = unprivileged_data(ue)
    ue.tracefs.write(MAXIMUM, "0\n")
    assert error_of(data.register(ue.name(), flags=PERSIST)) == "EPERM"


@case(needs="arguments_matched text_flags_refused", tier="full", bug="enomem-for-bad-address")
@spec("user_event_parse")
@variants(
    ("compared-before-parsed", "e long a", {}, "EADDRINUSE"),
    ("compared-before-word", "e u32 a", {"enable_addr": 0}, "EADDRINUSE"),
    ("parsed-before-word", "f long a", {"enable_addr": 0}, "EINVAL"),
    ("text-flags-before-compared", "e:x u32 a", {}, "EINVAL"),
    ("text-flags-before-word", "f:x", {"enable_addr": 0}, "EINVAL"),
    ("word-last", "e u8 z", {"enable_addr": 0}, "EFAULT"),
)
def test_order_fields(ue: UserEvents, definition: str, members: Change, errno: str) -> None:
    """Order of checks: text flags, fields of an existing event, parsing, the word."""
    data = ue.event("u8 z").data
    present = "ENOMEM" if errno == "EFAULT" else errno
    errno = ue.bug("enomem-for-bad-address", fixed=errno, present=present)
    assert error_of(data.register(ue.name(definition), **members)) == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')} u8 z\n"


@case(spec="user_event_parse", tier="full", isolation="global")
@variants(
    ("bad-field-first", "f long a", {}, "EINVAL"),
    ("bad-address-last", "f u32 a", {"enable_addr": 0}, "EMFILE"),
    ("other-fields-first", "e u32 a", {}, "EADDRINUSE"),
    ("existing-needs-no-room", "e u8 z", {}, ""),
)
def test_order_at_the_maximum(ue: UserEvents, definition: str, members: Change, errno: str) -> None:
    """The limit is checked after the fields have been parsed, before the word is written."""
    data = ue.event("u8 z").data
    ue.tracefs.write(MAXIMUM, "1\n")
    seen = data.register(ue.name(definition), **members)
    ue.tracefs.write(MAXIMUM, "32768\n")
    unmatched = errno if errno != "EADDRINUSE" else ""
    assert seen.errno == ue.dated("arguments_matched", since=errno, before=unmatched)
