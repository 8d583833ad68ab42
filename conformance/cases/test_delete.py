"""DIAG_IOCSDEL: an event is deleted by its name, unless somebody still uses it."""

from __future__ import annotations

import mmap
import os

from conformance.abi.layouts import DIAG_IOCSDEL
from conformance.cases.declare import case, variants
from conformance.sut.user_events import UserEvents

RST = "Documentation/trace/user_events.rst@v6.12: Deleting"
NAME = f"{RST}: the argument is a string, the name of the event"
BUSY = f"{RST}: succeeds only when neither user nor kernel space holds a reference"
PERMISSION = f"{RST}: deleting an event that persists requires CAP_PERFMON, else EPERM"
FORMATS = f"{RST}: all formats of a name are attempted"
DELETE = "trace_events_user.c:delete_user_event"
COPY = "mm/util.c:strndup_user"

# Of mmap(2); Python has no name for it.
PROT_NONE = 0
PERSIST = 1
MULTI_FORMAT = 2


def lasting(ue: UserEvents) -> int:
    """The flags of a registration whose event stays when nobody uses it any more."""
    return ue.dated("auto_delete", since=PERSIST, before=0)


def abandoned(ue: UserEvents, definition: str) -> None:
    """Let a process of its own register an event that stays, and exit."""
    process = ue.new_process()
    process.open_data().register(definition, flags=lasting(ue))
    process.exit()


# Names


@case(
    "delete.unknown",
    spec=DELETE,
    doc=NAME,
    profiles="5.18..",
)
@variants(
    "name",
    {
        "never-registered": "{name}x",
        "cut-short": "{stem}",
        "with-prefix": "u:{name}",
        "with-system": "user_events/{name}",
        "with-arguments": "{name} u32 a",
        "with-space": "{name} ",
        "with-colon": "{name}:",
        "with-id": "{name}.0",
        "upper-case": "{upper}",
        "empty": "",
    },
)
def test_unknown(ue: UserEvents, name: str) -> None:
    """Only the bare name of an event will do, to the letter: else ENOENT."""
    data = ue.open_data()
    event = ue.name("event")
    data.register(f"{event} u32 a")
    wrong = name.format(name=event, stem=event[:-1], upper=event.upper())
    assert data.delete(wrong).errno == "ENOENT"
    assert ue.tracefs.status() == ue.status_line(1, event)


@case(
    "delete.string_unreadable",
    spec=COPY,
    doc=NAME,
    profiles="5.18..",
)
@variants("address", {"null": 0, "kernel-half": 0xFFFF_8880_0000_0000, "first-page": 0x200})
def test_string_unreadable(ue: UserEvents, address: int) -> None:
    """A name that cannot be read is EFAULT."""
    assert ue.open_data().ioctl(DIAG_IOCSDEL, address).errno == "EFAULT"


@case(
    "delete.string_protected",
    spec=COPY,
    doc=NAME,
    profiles="5.18..",
)
@variants(
    "protection, errno",
    {"none": (PROT_NONE, "EFAULT"), "read": (mmap.PROT_READ, "EBUSY")},
)
def test_string_protected(ue: UserEvents, protection: int, errno: str) -> None:
    """A name must be readable, and nothing more."""
    data = ue.open_data()
    data.register(ue.name())
    at = ue.process.map()
    ue.process.store(at, ue.name().encode() + b"\0")
    ue.process.protect(at, protection)
    assert data.ioctl(DIAG_IOCSDEL, at).errno == errno


@case(
    "delete.string_cut_off",
    spec=COPY,
    doc=NAME,
    profiles="5.18..",
)
@variants(
    "length, end, errno",
    {
        "terminated": (30, b"\0", "ENOENT"),
        "30": (30, b"", "EFAULT"),
        "511": (511, b"", "EFAULT"),
        "512": (512, b"", "EINVAL"),
    },
)
def test_string_cut_off(ue: UserEvents, length: int, end: bytes, errno: str) -> None:
    """A name that runs into unmapped memory is EFAULT, past 512 bytes it is too long."""
    at = ue.process.place(b"x" * length + end)
    assert ue.open_data().ioctl(DIAG_IOCSDEL, at).errno == errno


@case(
    "delete.string_length",
    spec=COPY,
    doc=NAME,
    profiles="5.18..",
)
@variants("length, errno", {"511": (511, "ENOENT"), "512": (512, "EINVAL")})
def test_string_length(ue: UserEvents, length: int, errno: str) -> None:
    """A name has at most 511 characters; longer is EINVAL instead of not found."""
    assert ue.open_data().delete(ue.name().ljust(length, "x")).errno == errno


# References


@case(
    "delete.busy_own_descriptor",
    spec="trace_events_user.c:user_event_last_ref",
    doc=BUSY,
    profiles="5.18..",
)
def test_busy_own_descriptor(ue: UserEvents) -> None:
    """The descriptor that registered the event is a user of it: EBUSY."""
    data = ue.open_data()
    event = data.register(ue.name())
    assert data.delete(ue.name()).errno == "EBUSY"
    if ue.profile.has("remote_enable"):
        data.unregister(event.word)
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(
    "delete.busy_other_process",
    spec="trace_events_user.c:user_event_last_ref",
    doc=BUSY,
    tier="full",
    profiles="5.18..",
)
def test_busy_other_process(ue: UserEvents) -> None:
    """An event that another process holds is EBUSY."""
    ue.new_process().open_data().register(ue.name())
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"


@case(
    "delete.busy_enabler",
    spec="trace_events_user.c:user_event_last_ref",
    doc=BUSY,
    needs=("persist",),
)
def test_busy_enabler(ue: UserEvents) -> None:
    """A registered word alone holds the event, descriptor closed: EBUSY until unregistered."""
    owner, other = ue.open_data(), ue.open_data()
    word = owner.register(ue.name(), flags=PERSIST).word
    owner.close()
    assert other.delete(ue.name()).errno == "EBUSY"
    other.unregister(word)
    assert other.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.status() == ""


@case(
    "delete.busy_descriptor_alone",
    spec="trace_events_user.c:user_event_last_ref",
    doc=BUSY,
    needs=("lasting_events",),
    profiles="5.18..",
)
def test_busy_descriptor_alone(ue: UserEvents) -> None:
    """A descriptor alone holds the event, no word registered: EBUSY until closed."""
    owner, other = ue.open_data(), ue.open_data()
    owner.register(ue.name(), flags=lasting(ue), enable_addr=0)
    assert other.delete(ue.name()).errno == "EBUSY"
    copy = owner.dup()
    owner.close()
    assert other.delete(ue.name()).errno == "EBUSY"
    copy.close()
    assert other.delete(ue.name()).value == 0


@case(
    "delete.busy_child",
    spec="trace_events_user.c:user_event_enabler_dup",
    doc=BUSY,
    needs=("lasting_events",),
    tier="full",
    profiles="5.18..",
)
def test_busy_child(ue: UserEvents) -> None:
    """A forked child holds what its parent registered: EBUSY until it is gone."""
    parent = ue.new_process()
    parent.open_data().register(ue.name(), flags=lasting(ue))
    child = ue.fork(parent)
    parent.exit()
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    child.exit()
    assert data.delete(ue.name(), eventually=True).value == 0


@case(
    "delete.busy_tracer",
    spec="trace_events_user.c:user_event_reg",
    doc=BUSY,
    needs=("lasting_events",),
    tier="full",
    profiles="5.18..",
)
def test_busy_tracer(ue: UserEvents) -> None:
    """A tracer that has the event enabled holds it: EBUSY until disabled."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    ue.tracefs.enable(ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert data.delete(ue.name()).value == 0


@case(
    "delete.auto_delete",
    spec="trace_events_user.c:user_event_last_ref",
    doc=f"{RST}: by default an event goes with its last reference",
    needs=("auto_delete",),
    tier="full",
)
def test_auto_delete(ue: UserEvents) -> None:
    """An event that goes by itself is EBUSY while it lives and ENOENT afterwards."""
    process = ue.new_process()
    process.open_data().register(ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    process.exit()
    assert data.delete(ue.name(), eventually=True).errno == "ENOENT"


@case(
    "delete.auto_delete_while_traced",
    spec="trace_events_user.c:user_event_reg",
    doc=BUSY,
    needs=("auto_delete",),
    tier="full",
)
def test_auto_delete_while_traced(ue: UserEvents) -> None:
    """An event nobody registers any more is held by its tracer: EBUSY, then it goes."""
    process = ue.new_process()
    process.open_data().register(ue.name())
    ue.tracefs.enable(ue.name())
    process.exit()
    assert ue.tracefs.status() == f"{ue.name()} # Used by ftrace\n"
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert data.delete(ue.name(), eventually=True).errno == "ENOENT"


# Success


@case(
    "delete.removes",
    spec=DELETE,
    doc=BUSY,
    needs=("lasting_events",),
    tier="full",
    profiles="5.18..",
)
@variants("flags", {"read-write": os.O_RDWR, "read-only": os.O_RDONLY, "write-only": os.O_WRONLY})
def test_removes(ue: UserEvents, flags: int) -> None:
    """An event nobody uses is gone at once, through a file opened in whatever mode."""
    abandoned(ue, f"{ue.name()} u32 a")
    data = ue.open_data(flags)
    assert data.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.status() == ""
    assert ue.tracefs.dynamic_events() == ""
    assert data.delete(ue.name()).errno == "ENOENT"


@case(
    "delete.removes_directory",
    spec="trace_events_user.c:destroy_user_event",
    doc=BUSY,
    needs=("lasting_events",),
    profiles="5.18..",
)
def test_removes_directory(ue: UserEvents) -> None:
    """With the event its directory below events/user_events is gone."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(
    "delete.name_is_free",
    spec=DELETE,
    doc=BUSY,
    needs=("lasting_events",),
    profiles="5.18..",
)
def test_name_is_free(ue: UserEvents) -> None:
    """A deleted name can be registered with other fields."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    taken = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    assert ue.tracefs.command(f"u:{ue.name()} u64 b").errno == taken
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    data = ue.open_data()
    assert data.delete(ue.name()).value == 0
    assert data.register(f"{ue.name()} u64 b").index == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u64 b\n"


@case(
    "delete.only_the_name",
    spec=DELETE,
    doc=NAME,
    needs=("lasting_events",),
    profiles="5.18..",
)
def test_only_the_name(ue: UserEvents) -> None:
    """Events whose names begin alike stay."""
    for stem in ("e", "ee", "eee"):
        ue.tracefs.command(f"u:{ue.name(stem)}")
    assert ue.open_data().delete(ue.name("ee")).value == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')}\nu:{ue.name('eee')}\n"


@case(
    "delete.longest_name",
    spec=COPY,
    doc=NAME,
    needs=("lasting_events",),
    tier="full",
    profiles="5.18..",
)
def test_longest_name(ue: UserEvents) -> None:
    """A name of 511 characters can be registered and deleted."""
    name = ue.name().ljust(511, "n")
    abandoned(ue, name)
    assert ue.tracefs.dynamic_events() == f"u:{name}\n"
    assert ue.open_data().delete(name, eventually=True).value == 0


# Permission


@case(
    "delete.forbidden",
    spec="trace_events_user.c:user_event_capable",
    doc=PERMISSION,
    needs=("persist",),
    tier="full",
)
def test_forbidden(ue: UserEvents) -> None:
    """A process without CAP_PERFMON may not delete an event that persists: EPERM."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "EPERM"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    assert ue.new_process().open_data().delete(ue.name()).value == 0


@case("delete.busy_before_forbidden", spec=DELETE, doc=PERMISSION, needs=("persist",))
def test_busy_before_forbidden(ue: UserEvents) -> None:
    """Whether the event is used comes before permission: EBUSY, then EPERM."""
    owner = ue.open_data()
    owner.register(ue.name(), flags=PERSIST, enable_addr=0)
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "EBUSY"
    owner.close()
    assert data.delete(ue.name()).errno == "EPERM"


@case(
    "delete.unknown_before_forbidden",
    spec=DELETE,
    doc=PERMISSION,
    tier="full",
    profiles="5.18..",
)
def test_unknown_before_forbidden(ue: UserEvents) -> None:
    """A name nobody registered is ENOENT for a process without capabilities as well."""
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "ENOENT"


@case(
    "delete.allowed_to_everybody",
    spec="trace_events_user.c:user_event_set_call_visible",
    doc="Documentation/trace/user_events.rst@v6.1: silent; who may open the file may delete",
    profiles="5.18..6.4",
    without=("auto_delete", "persist"),
    tier="full",
)
def test_allowed_to_everybody(ue: UserEvents) -> None:
    """Before some events were made to persist it took no capability to delete one."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == ""
    assert ue.tracefs.dynamic_events() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


# Several formats of one name


@case(
    "delete.all_formats",
    spec=DELETE,
    doc=FORMATS,
    needs=("multi_format", "arguments_matched", "persist"),
    tier="full",
)
def test_all_formats(ue: UserEvents) -> None:
    """All formats of a name go, and the single-format event of that name with them."""
    data = ue.open_data()
    for fields, flags in (("u32 a", 3), ("u64 b", 3), ("u8 c", PERSIST)):
        data.register(f"{ue.name()} {fields}", flags=flags, enable_addr=0)
    data.close()
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.dynamic_events() == ""


@case(
    "delete.formats_up_to_the_busy_one",
    spec=DELETE,
    doc=FORMATS,
    needs=("multi_format", "arguments_matched", "persist"),
    tier="full",
)
@variants(
    "held, left",
    {
        "oldest-busy": (0, ["u32 a"]),
        "middle-busy": (1, ["u32 a", "u64 b"]),
        "newest-busy": (2, ["u32 a", "u64 b", "u8 c"]),
    },
)
def test_formats_up_to_the_busy_one(ue: UserEvents, held: int, left: list[str]) -> None:
    """Formats go newest first up to one that is used; the call is EBUSY all the same."""
    files = [ue.open_data() for _ in range(3)]
    for data, fields in zip(files, ("u32 a", "u64 b", "u8 c"), strict=True):
        data.register(f"{ue.name()} {fields}", flags=PERSIST | MULTI_FORMAT, enable_addr=0)
    for data in files:
        if data is not files[held]:
            data.close()
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == "".join(f"u:{ue.name()} {text}\n" for text in left)


@case(
    "delete.formats_forbidden",
    spec=DELETE,
    doc=FORMATS,
    needs=("multi_format", "arguments_matched", "persist"),
    tier="full",
)
def test_formats_forbidden(ue: UserEvents) -> None:
    """The newest format that may not be deleted ends the call: EPERM, all stay."""
    keeper = ue.open_data()
    for fields in ("u32 a", "u64 b"):
        keeper.register(f"{ue.name()} {fields}", flags=PERSIST | MULTI_FORMAT, enable_addr=0)
    data = ue.open_data()
    keeper.close()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "EPERM"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\nu:{ue.name()} u64 b\n"
