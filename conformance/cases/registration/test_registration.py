"""DIAG_IOCSREG: the structure, the flags, the name, and existing events."""

import mmap

from conformance.abi.uapi import DIAG_IOCSREG
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.registration import (
    PERSIST,
    UNTOUCHED,
    error_of,
    packed_reg,
    unprivileged_data,
)
from conformance.client.addresses import KERNEL_HALF, PROT_NONE

DOC = "Registering: name_args points to the name and arguments of the event"
SIZES = "Registering: size must be that of struct user_reg; silent about other sizes"
UNREADABLE = "Registering: name_args points to a string; silent about memory that cannot be read"
case = surface("registration", spec="user_reg_get", doc=DOC, level="behaviour")


@case(doc=SIZES, profiles="6.4..")
@variants(
    ("4096-zero", 4096, bytes(4068), ""),
    ("0", 0, b"", "EINVAL"),
    ("4", 4, b"", "EINVAL"),
    ("27", 27, b"", "EINVAL"),
    ("28", 28, b"", ""),
    ("28-not-looking-behind", 28, b"\x01", ""),
    ("29-zero", 29, b"\0", ""),
    ("29-nonzero", 29, b"\x01", "E2BIG"),
    ("36-nonzero-at-the-end", 36, bytes(7) + b"\x80", "E2BIG"),
    ("4096-nonzero-at-the-end", 4096, bytes(4067) + b"\x01", "E2BIG"),
    ("4096-not-looking-behind", 4096, bytes(4068) + b"\x01", ""),
    ("4097-zero", 4097, bytes(4069), "E2BIG"),
    ("huge", 0xFFFF_FFFF, b"", "E2BIG"),
)
def test_size(ue: UserEvents, size: int, tail: bytes, errno: str) -> None:
    """The size is 28 bytes up to a page; bytes past the known members must be zero."""
    seen = ue.open_data().register(ue.name(), struct_size=size, tail=tail)
    assert (seen.errno, seen.index) == (errno, UNTOUCHED if errno else 0)


@case(doc="Registering: takes a struct user_reg; silent about memory that cannot be read")
@variants({"null": 0, "kernel-half": KERNEL_HALF, "last-word": 0xFFFF_FFFF_FFFF_FFFC})
def test_struct_unreadable(ue: UserEvents, address: int) -> None:
    """A structure that cannot be read is EFAULT."""
    assert ue.open_data().ioctl(DIAG_IOCSREG, address).errno == "EFAULT"


@case(level="detail", profiles="6.4..")
@doc("Registering: write_index is set upon success; silent about memory that cannot be written")
@variants(("read", mmap.PROT_READ, ""), ("none", PROT_NONE, "EFAULT"))
def test_struct_protected(ue: UserEvents, protection: int, errno: str) -> None:
    """A structure in read-only memory registers successfully, but gets no index."""
    data = ue.open_data()
    word = ue.process.word(value=0xFFFF_FFFF)
    at = ue.process.map()
    ue.process.store(at, packed_reg(ue, word, ue.name(), write_index=77))
    ue.process.protect(at, protection)
    assert data.ioctl(DIAG_IOCSREG, at).errno == errno
    ue.process.protect(at, mmap.PROT_READ)
    assert ue.process.load_number(at + 24, 4) == 77
    assert word.value == (0xFFFF_FFFF if errno else 0xFFFF_FFFE)


@case(spec="lib/usercopy.c:check_zeroed_user", doc=SIZES, level="detail", profiles="6.4..")
@variants(("zero", bytes(8), "EFAULT"), ("nonzero", b"\x01" * 8, "E2BIG"))
def test_tail_unreadable(ue: UserEvents, tail: bytes, errno: str) -> None:
    """An unreadable byte past the known members is EFAULT, unless one before it is nonzero."""
    data = ue.open_data()
    raw = packed_reg(ue, ue.process.word(), ue.name(), size=37)
    assert data.ioctl(DIAG_IOCSREG, ue.process.place(raw + tail)).errno == errno


@case(level="contract", profiles="6.4..")
@doc("Registering: a flag that is not supported gives -EINVAL")
@variants({"4": 0x4, "5": 0x5, "8": 0x8, "4000": 0x4000, "8000": 0x8000})
def test_unknown_flags(ue: UserEvents, flags: int) -> None:
    """An unknown flag is EINVAL, even together with a known one."""
    assert error_of(ue.open_data().register(ue.name(), flags=flags)) == "EINVAL"
    assert ue.tracefs.status() == ""


@case(spec="user_events_ioctl_reg: strndup_user", doc=UNREADABLE)
@variants({"null": 0, "first-page": 0x100, "kernel-half": KERNEL_HALF})
def test_string_unreadable(ue: UserEvents, address: int) -> None:
    """A string at an unreadable address is EFAULT."""
    assert error_of(ue.open_data().register("", name_args=address)) == "EFAULT"


@case(spec="mm/util.c:strndup_user", doc=UNREADABLE, level="detail")
@variants(
    ("terminated", 20, b"\0", ""),
    ("20", 20, b"", "EFAULT"),
    ("511", 511, b"", "EFAULT"),
    ("512", 512, b"", "EINVAL"),
)
def test_string_cut_off(ue: UserEvents, length: int, end: bytes, errno: str) -> None:
    """A string that runs into unmapped memory is EFAULT; past 512 bytes it is too long."""
    text = ue.process.place(ue.name().encode().ljust(length, b"x") + end)
    assert ue.open_data().register("", name_args=text).errno == errno


@case(spec="user_events_ioctl_reg: strndup_user, MAX_EVENT_DESC")
@doc("Registering: name_args points to a string; silent about its length")
@variants((512, "EINVAL"), (511, ""), (5000, "EINVAL"))
def test_string_length(ue: UserEvents, length: int, errno: str) -> None:
    """A string has at most 511 characters."""
    definition = f"{ue.name()} " + "u32 a".rjust(length - len(ue.name()) - 1)
    assert ue.open_data().register(definition).errno == errno
    assert ue.tracefs.dynamic_events() == ("" if errno else f"u:{ue.name()} u32 a\n")


@case(spec="user_event_parse")
@doc("Command Format: flags follow the name after a colon, and none is supported;")
@doc("silent about others")
@variants({"unknown": ":FLAG", "two": ":a,b u32 x", "empty": ":", "persist": ":1"})
def test_text_flags(ue: UserEvents, rest: str) -> None:
    """A colon in the name part is EINVAL; before 6.4 the text from the colon on was ignored."""
    seen = ue.open_data().register(ue.name() + rest)
    expected = ue.dated("text_flags_refused", since=("EINVAL", UNTOUCHED), before=("", 0))
    assert (seen.errno, seen.index) == expected
    lines = ue.dated("text_flags_refused", since="", before=ue.status_line(1, ue.name()))
    assert ue.tracefs.status() == lines


@case(spec="user_event_parse_cmd")
@doc("Command Format: flags follow the name; silent about colons in fields")
def test_colon_in_arguments(ue: UserEvents) -> None:
    """A colon after the first space belongs to the fields."""
    assert ue.open_data().register(f"{ue.name()} u32 a:b").errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a:b\n"


@case(spec="user_event_capable", level="contract", profiles="6.4..", needs="persist")
@doc("Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON, otherwise -EPERM")
@variants(("plain", 0, ""), ("persist", 1, "EPERM"))
def test_persist_forbidden(ue: UserEvents, flags: int, errno: str) -> None:
    """USER_EVENT_REG_PERSIST needs CAP_PERFMON."""
    assert unprivileged_data(ue).register(ue.name(), flags=flags).errno == errno
    assert ue.tracefs.status() == ("" if errno else f"{ue.name()}\n")


@case(spec="user_event_parse", profiles="6.4..", needs="persist")
@doc("Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON; silent about events that exist")
def test_persist_of_existing_forbidden(ue: UserEvents) -> None:
    """The flag is EPERM even if the event already persists; without the flag it registers."""
    ue.new_process().open_data().register(ue.name(), flags=PERSIST)
    data = unprivileged_data(ue)
    assert error_of(data.register(ue.name(), flags=PERSIST)) == "EPERM"
    assert data.register(ue.name()).index == 0


@case(spec="find_user_event", tier="full")
@doc("Registering: without USER_EVENT_REG_MULTI_FORMAT a changed format is blocked;")
@doc("silent about the error")
@variants(
    ("none", ""),
    ("fewer", " u32 a"),
    ("more", " u32 a; u64 b; u8 c"),
    ("reordered", " u64 b; u32 a"),
    ("renamed", " u32 a; u64 c"),
    ("retyped", " u32 a; s64 b"),
)
def test_other_fields(ue: UserEvents, fields: str) -> None:
    """An existing name with other fields is EADDRINUSE since 6.4, and the event does not change."""
    seen = ue.event("u32 a; u64 b").data.register(ue.name() + fields)
    expected = ue.dated("arguments_matched", since=("EADDRINUSE", UNTOUCHED), before=("", 0))
    assert (seen.errno, seen.index) == expected
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a; u64 b\n"


@case(spec="user_event_parse", profiles="6.4..", needs="persist auto_delete", tier="full")
@doc("Registering: USER_EVENT_REG_PERSIST keeps the event; silent about one that exists without")
def test_existing_keeps_flags(ue: UserEvents) -> None:
    """Registering an existing event with USER_EVENT_REG_PERSIST does not make it persist."""
    assert ue.event().data.register(ue.name(), flags=PERSIST).index == 0
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == ""
