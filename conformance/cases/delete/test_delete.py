"""DIAG_IOCSDEL: what keeps an event from being deleted, and what is removed."""

import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.cases.support.registration import MULTI_FORMAT, PERSIST, leave_event, persist_flag

SPEC = "delete_user_event"
DOC = "Deleting: succeeds only if no references are left in user and kernel space"
case = surface("delete", SPEC, DOC, level="contract", needs="lasting_events", tier="full")


@case(doc="Deleting: an ioctl of user_events_data; silent about open modes", level="behaviour")
@variants({"read-write": os.O_RDWR, "read-only": os.O_RDONLY, "write-only": os.O_WRONLY})
def test_removes(ue: UserEvents, flags: int) -> None:
    """An unreferenced event is deleted at once, whatever the open mode of the descriptor."""
    leave_event(ue, f"{ue.name()} u32 a")
    data = ue.open_data(flags)
    assert data.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.status() == ""
    assert ue.tracefs.dynamic_events() == ""
    assert data.delete(ue.name()).errno == "ENOENT"


@case(spec="destroy_user_event", tier="quick")
@doc("Unregistering: deleting, in contrast, removes the event from the system")
def test_removes_directory(ue: UserEvents) -> None:
    """Deleting an event removes its directory below events/user_events."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(level="behaviour", tier="quick")
@doc("Unregistering: deleting removes the event from the system; silent about names in use")
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


@case(doc="Deleting: the argument is one string, the name of the event", tier="quick")
def test_only_the_name(ue: UserEvents) -> None:
    """Events whose names share a prefix with the deleted name stay."""
    for stem in ("e", "ee", "eee"):
        ue.tracefs.command(f"u:{ue.name(stem)}")
    assert ue.open_data().delete(ue.name("ee")).value == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')}\nu:{ue.name('eee')}\n"


@case(spec="user_event_last_ref", needs="", tier="quick")
def test_busy_own_descriptor(ue: UserEvents) -> None:
    """The descriptor that registered the event holds a reference: EBUSY."""
    event = ue.event()
    assert event.delete().errno == "EBUSY"
    if ue.profile.has("remote_enable"):
        event.unregister()
    assert event.delete().errno == "EBUSY"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="user_event_last_ref", needs="")
def test_busy_other_process(ue: UserEvents) -> None:
    """An event that another process has registered is EBUSY."""
    ue.new_process().open_data().register(ue.name())
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"


@case(spec="user_event_last_ref", profiles="6.4..", needs="persist", tier="quick")
def test_busy_enabler(ue: UserEvents) -> None:
    """After close, a registered word alone holds the event: EBUSY until it is unregistered."""
    owner, other = ue.open_data(), ue.open_data()
    word = owner.register(ue.name(), flags=PERSIST).word
    owner.close()
    assert other.delete(ue.name()).errno == "EBUSY"
    other.unregister(word)
    assert other.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.status() == ""


@case(spec="user_event_last_ref", tier="quick")
def test_busy_descriptor_alone(ue: UserEvents) -> None:
    """A descriptor without a registered word holds the event: EBUSY until it is closed."""
    owner, other = ue.open_data(), ue.open_data()
    owner.register(ue.name(), flags=persist_flag(ue), enable_addr=0)
    assert other.delete(ue.name()).errno == "EBUSY"
    copy = owner.dup()
    owner.close()
    assert other.delete(ue.name()).errno == "EBUSY"
    copy.close()
    assert other.delete(ue.name()).value == 0


@case(spec="user_event_enabler_dup")
def test_busy_child(ue: UserEvents) -> None:
    """A forked child holds what its parent registered: EBUSY until the child exits."""
    parent = ue.new_process()
    parent.open_data().register(ue.name(), flags=persist_flag(ue))
    child = ue.fork(parent)
    parent.exit()
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    child.exit()
    assert data.delete(ue.name(), eventually=True).value == 0


@case(spec="user_event_enabler_dup", profiles="6.4..", needs="persist auto_delete")
def test_busy_child_word(ue: UserEvents) -> None:
    """A word that a child inherited holds a persistent event alone: EBUSY until the child exits."""
    passing, parent = process_with_event(ue), ue.new_process()
    owner = parent.open_data()
    owner.register(ue.name(), flags=PERSIST)
    owner.close()
    child = ue.fork(parent)
    parent.exit()
    # Once this event is gone, the parent holds nothing.
    assert status_after(ue, passing) == f"{ue.name()}\n"
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    child.exit()
    assert data.delete(ue.name(), eventually=True).value == 0


@case(spec="user_event_reg")
def test_busy_tracer(ue: UserEvents) -> None:
    """A tracer that enabled the event holds a reference: EBUSY until it is disabled."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    ue.tracefs.enable(ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert data.delete(ue.name()).value == 0


@case(spec="user_event_last_ref", profiles="6.4..", needs="auto_delete")
@doc("Deleting: by default an event is deleted when no references are left")
def test_auto_delete(ue: UserEvents) -> None:
    """An auto-delete event is EBUSY while it exists and ENOENT afterwards."""
    process = ue.new_process()
    process.open_data().register(ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    process.exit()
    assert data.delete(ue.name(), eventually=True).errno == "ENOENT"


@case(spec="user_event_reg", profiles="6.4..", needs="auto_delete")
def test_auto_delete_while_traced(ue: UserEvents) -> None:
    """An event that is no longer registered is held by its tracer: EBUSY until disabled."""
    process = ue.new_process()
    process.open_data().register(ue.name())
    ue.tracefs.enable(ue.name())
    process.exit()
    assert ue.tracefs.status() == f"{ue.name()} # Used by ftrace\n"
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert data.delete(ue.name(), eventually=True).errno == "ENOENT"


@case(profiles="6.4..", needs="multi_format arguments_matched persist", tier="quick")
@doc("Deleting: with several formats of a name, deletion of all of them is attempted")
def test_all_formats(ue: UserEvents) -> None:
    """All formats of a name are deleted, and so is the single-format event of that name."""
    data = ue.open_data()
    for fields, flags in (("u32 a", 3), ("u64 b", 3), ("u8 c", PERSIST)):
        data.register(f"{ue.name()} {fields}", flags=flags, enable_addr=0)
    data.close()
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.dynamic_events() == ""


@case(level="detail", needs="multi_format arguments_matched persist", tier="quick")
@doc("Deleting: all formats are attempted; silent about what a failure leaves")
@variants(
    ("newest-busy", 2, ["u32 a", "u64 b", "u8 c"]),
    ("middle-busy", 1, ["u32 a", "u64 b"]),
    ("oldest-busy", 0, ["u32 a"]),
)
def test_formats_up_to_the_busy_one(ue: UserEvents, held: int, left: list[str]) -> None:
    """Formats are deleted newest first up to one in use; the call still fails with EBUSY."""
    files = [ue.open_data() for _ in range(3)]
    for data, fields in zip(files, ("u32 a", "u64 b", "u8 c"), strict=True):
        data.register(f"{ue.name()} {fields}", flags=PERSIST | MULTI_FORMAT, enable_addr=0)
    for data in files:
        if data is not files[held]:
            data.close()
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == "".join(f"u:{ue.name()} {text}\n" for text in left)


@case(profiles="6.4..", needs="multi_format arguments_matched persist")
@doc("Deleting: deleting an event that persists requires CAP_PERFMON, otherwise -EPERM")
def test_formats_forbidden(ue: UserEvents) -> None:
    """If the newest format may not be deleted the call fails with EPERM and all formats stay."""
    holder = ue.open_data()
    for fields in ("u32 a", "u64 b"):
        holder.register(f"{ue.name()} {fields}", flags=PERSIST | MULTI_FORMAT, enable_addr=0)
    data = ue.open_data()
    holder.close()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "EPERM"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\nu:{ue.name()} u64 b\n"
