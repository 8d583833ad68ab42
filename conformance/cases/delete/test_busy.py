"""DIAG_IOCSDEL: references that keep an event from being deleted."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.cases.support.registration import PERSIST, lasting
from conformance.client.user_events import UserEvents

case = surface(
    "delete",
    spec="trace_events_user.c:user_event_last_ref",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: succeeds only when neither user "
    "nor kernel space holds a reference",
    tier="full",
)


@case(tier="quick")
def test_busy_own_descriptor(ue: UserEvents) -> None:
    """The descriptor that registered the event holds a reference: EBUSY."""
    event = ue.event()
    assert event.delete().errno == "EBUSY"
    if ue.profile.has("remote_enable"):
        event.unregister()
    assert event.delete().errno == "EBUSY"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case
def test_busy_other_process(ue: UserEvents) -> None:
    """An event that another process has registered is EBUSY."""
    ue.new_process().open_data().register(ue.name())
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"


@case(profiles="6.4..", needs="persist", tier="quick")
def test_busy_enabler(ue: UserEvents) -> None:
    """After close, a registered word alone holds the event: EBUSY until it is unregistered."""
    owner, other = ue.open_data(), ue.open_data()
    word = owner.register(ue.name(), flags=PERSIST).word
    owner.close()
    assert other.delete(ue.name()).errno == "EBUSY"
    other.unregister(word)
    assert other.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.status() == ""


@case(needs="lasting_events", tier="quick")
def test_busy_descriptor_alone(ue: UserEvents) -> None:
    """A descriptor without a registered word holds the event: EBUSY until it is closed."""
    owner, other = ue.open_data(), ue.open_data()
    owner.register(ue.name(), flags=lasting(ue), enable_addr=0)
    assert other.delete(ue.name()).errno == "EBUSY"
    copy = owner.dup()
    owner.close()
    assert other.delete(ue.name()).errno == "EBUSY"
    copy.close()
    assert other.delete(ue.name()).value == 0


@case(spec="trace_events_user.c:user_event_enabler_dup", needs="lasting_events")
def test_busy_child(ue: UserEvents) -> None:
    """A forked child holds what its parent registered: EBUSY until the child exits."""
    parent = ue.new_process()
    parent.open_data().register(ue.name(), flags=lasting(ue))
    child = ue.fork(parent)
    parent.exit()
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    child.exit()
    assert data.delete(ue.name(), eventually=True).value == 0


@case(spec="trace_events_user.c:user_event_reg", needs="lasting_events")
def test_busy_tracer(ue: UserEvents) -> None:
    """A tracer that enabled the event holds a reference: EBUSY until it is disabled."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    ue.tracefs.enable(ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert data.delete(ue.name()).value == 0


@case(
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: by default an event is deleted "
    "with its "
    "last reference",
    profiles="6.4..",
    needs="auto_delete",
)
def test_auto_delete(ue: UserEvents) -> None:
    """An auto-delete event is EBUSY while it exists and ENOENT afterwards."""
    process = ue.new_process()
    process.open_data().register(ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    process.exit()
    assert data.delete(ue.name(), eventually=True).errno == "ENOENT"


@case(spec="trace_events_user.c:user_event_reg", profiles="6.4..", needs="auto_delete")
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
