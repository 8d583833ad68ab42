"""DIAG_IOCSDEL: events that a process without capabilities may delete."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.cases.support.registration import PERSIST
from conformance.client.user_events import UserEvents

case = surface(
    "delete",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: deleting an event that persists "
    "requires CAP_PERFMON, else EPERM",
    tier="full",
)


@case(spec="user_event_capable", profiles="6.4..", needs="persist")
def test_forbidden(ue: UserEvents) -> None:
    """Without CAP_PERFMON a persistent event cannot be deleted: EPERM."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "EPERM"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    assert ue.new_process().open_data().delete(ue.name()).value == 0


@case(spec="delete_user_event", profiles="6.4..", needs="persist", tier="quick")
def test_busy_before_forbidden(ue: UserEvents) -> None:
    """References are checked before permission: EBUSY, then EPERM."""
    owner = ue.open_data()
    owner.register(ue.name(), flags=PERSIST, enable_addr=0)
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "EBUSY"
    owner.close()
    assert data.delete(ue.name()).errno == "EPERM"


@case(spec="delete_user_event")
def test_unknown_before_forbidden(ue: UserEvents) -> None:
    """A name that was never registered is ENOENT without capabilities, too."""
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == "ENOENT"


@case(
    spec="user_event_set_call_visible",
    doc="Documentation/trace/user_events.rst@v6.1: silent; a process that may open the file "
    "may delete",
    profiles="5.18..6.4",
    without="auto_delete persist",
)
def test_allowed_to_everybody(ue: UserEvents) -> None:
    """Before persistent events existed, deleting an event needed no capability."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.delete(ue.name()).errno == ""
    assert ue.tracefs.dynamic_events() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"
