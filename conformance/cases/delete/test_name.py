"""DIAG_IOCSDEL: its argument, the permission it needs, and each pair of errors."""

import mmap

from conformance.abi.uapi import DIAG_IOCSDEL
from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.cases.support.registration import PERSIST, leave_event, unprivileged_data
from conformance.client.addresses import PROT_NONE

DOC = "Deleting: the argument is one string, the name of the event"
UNREADABLE = "Deleting: the argument is a string; silent about memory that cannot be read"
case = surface("delete", doc=DOC, level="behaviour")


@case(spec="delete_user_event")
@doc("Deleting: by the name of the event; silent about names that do not exist")
@variants(
    ("never-registered", "{name}x"),
    ("with-space", "{name} "),
    ("with-colon", "{name}:"),
    ("cut-short", "{stem}"),
    ("with-prefix", "u:{name}"),
    ("with-system", "user_events/{name}"),
    ("with-arguments", "{name} u32 a"),
    ("with-id", "{name}.0"),
    ("upper-case", "{upper}"),
    ("empty", ""),
    quick=3,
)
def test_unknown(ue: UserEvents, name: str) -> None:
    """Only the exact name of an event matches; anything else is ENOENT."""
    data = ue.open_data()
    event = ue.name("event")
    data.register(f"{event} u32 a")
    wrong = name.format(name=event, stem=event[:-1], upper=event.upper())
    assert data.delete(wrong).errno == "ENOENT"
    assert ue.tracefs.status() == ue.status_line(1, event)


@case(spec="user_events_ioctl_del: strndup_user", doc=UNREADABLE)
@variants({"null": 0, "kernel-half": 0xFFFF_8880_0000_0000, "first-page": 0x200})
def test_string_unreadable(ue: UserEvents, address: int) -> None:
    """A name at an unreadable address is EFAULT."""
    assert ue.open_data().ioctl(DIAG_IOCSDEL, address).errno == "EFAULT"


@case(spec="user_events_ioctl_del: strndup_user")
@doc("Deleting: the argument is a string; silent about memory that cannot be written")
@variants(("none", PROT_NONE, "EFAULT"), ("read", mmap.PROT_READ, "EBUSY"))
def test_string_protected(ue: UserEvents, protection: int, errno: str) -> None:
    """The name only needs to be readable."""
    data = ue.event().data
    at = ue.process.map()
    ue.process.store(at, ue.name().encode() + b"\0")
    ue.process.protect(at, protection)
    assert data.ioctl(DIAG_IOCSDEL, at).errno == errno


@case(spec="mm/util.c:strndup_user", doc=UNREADABLE, level="detail")
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


@case(spec="user_events_ioctl_del: strndup_user, MAX_EVENT_DESC")
@doc("Deleting: the argument is a string; silent about its length")
@variants((511, "ENOENT"), (512, "EINVAL"))
def test_string_length(ue: UserEvents, length: int, errno: str) -> None:
    """A name has at most 511 characters; a longer one is EINVAL, not ENOENT."""
    assert ue.open_data().delete(ue.name().ljust(length, "x")).errno == errno


@case(needs="lasting_events", tier="full")
@spec("user_events_ioctl_del: strndup_user, MAX_EVENT_DESC")
@doc("Deleting: the argument is a string; silent about its length")
def test_longest_name(ue: UserEvents) -> None:
    """A name of 511 characters can be registered and deleted."""
    name = ue.name().ljust(511, "n")
    leave_event(ue, name)
    assert ue.tracefs.dynamic_events() == f"u:{name}\n"
    assert ue.open_data().delete(name, eventually=True).value == 0


@case(spec="user_event_capable", level="contract", profiles="6.4..", needs="persist", tier="full")
@doc("Deleting: deleting an event that persists requires CAP_PERFMON, otherwise -EPERM")
def test_forbidden(ue: UserEvents) -> None:
    """Without CAP_PERFMON a persistent event cannot be deleted: EPERM."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    data = unprivileged_data(ue)
    assert data.delete(ue.name()).errno == "EPERM"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    assert ue.new_process().open_data().delete(ue.name()).value == 0


@case(spec="delete_user_event", level="detail", profiles="6.4..", needs="persist")
@doc("Deleting: silent about which of two errors is reported")
def test_busy_before_forbidden(ue: UserEvents) -> None:
    """References are checked before permission: EBUSY, then EPERM."""
    owner = ue.open_data()
    owner.register(ue.name(), flags=PERSIST, enable_addr=0)
    data = unprivileged_data(ue)
    assert data.delete(ue.name()).errno == "EBUSY"
    owner.close()
    assert data.delete(ue.name()).errno == "EPERM"


@case(spec="delete_user_event", tier="full")
@doc("Deleting: of events that persist requires CAP_PERFMON; silent about names that do not exist")
def test_unknown_before_forbidden(ue: UserEvents) -> None:
    """A name that was never registered is ENOENT without capabilities, too."""
    data = unprivileged_data(ue)
    assert data.delete(ue.name()).errno == "ENOENT"


@case(profiles="5.18..6.3", without="auto_delete persist", tier="full")
@spec("user_event_set_call_visible")
@doc("@v6.1: silent; a process that may open the file may delete")
def test_allowed_to_everybody(ue: UserEvents) -> None:
    """Before persistent events existed, deleting an event needed no capability."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    data = unprivileged_data(ue)
    assert data.delete(ue.name()).errno == ""
    assert ue.tracefs.dynamic_events() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


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


@case(level="detail", profiles="6.4..", needs="persist")
@spec("user_events_ioctl_del, delete_user_event")
@doc("Deleting: silent about which of two errors is reported")
@variants(pairs(ORDER, APART))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and the event stays."""
    errors = (first, second)
    process, data = ue.process, ue.open_data()
    ue.tracefs.command(f"u:{ue.name()}\n")
    if "busy" in errors:
        ue.tracefs.enable(ue.name())
    name = ue.name("f" if "unknown" in errors else "e").encode()
    text = name.ljust(512, b"x") if "too-long" in errors else name
    # The unreadable byte replaces the end of the name.
    place = process.place(text + (b"" if "unreadable" in errors else b"\0"))
    if "permission" in errors:
        process.setuid()
    assert data.ioctl(DIAG_IOCSDEL, place).errno == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"
