"""Instances that have an event enabled hold it until the last one disables it."""

from __future__ import annotations

import os

from conformance.cases.case import surface, variants
from conformance.cases.support.instances import made
from conformance.client.tracefs import Tracefs
from conformance.client.user_events import UserEvents

case = surface(
    "instance",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting",
    needs="auto_delete",
    isolation="global",
)


@case(
    spec="user_event_reg; trace_events_user.c:user_event_free",
    doc="an event in use is not deleted",
    needs="lasting_events",
)
@variants(
    ("ioctl", "ioctl", 1),
    ("ioctl.two", "ioctl", 2),
    ("dynamic_events", "dynamic_events", 1),
    ("truncation", "truncation", 1),
)
def test_keeps_an_event(ue: UserEvents, way: str, listeners: int) -> None:
    """An event enabled only in instances cannot be deleted: EBUSY, until the last one disables
    it.
    """
    ue.tracefs.command(f"u:{ue.name()}\n")
    data = ue.open_data()
    instances = [made(ue, stem) for stem in ("i", "j")[:listeners]]

    def delete() -> str:
        if way == "ioctl":
            return data.delete(ue.name()).errno
        if way == "truncation":
            return ue.tracefs.command("\n", os.O_WRONLY | os.O_TRUNC).errno
        return ue.tracefs.command(f"-:{ue.name()}\n").errno

    for instance in instances:
        instance.enable(ue.name())
    for instance in instances:
        assert delete() == "EBUSY"
        assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
        instance.disable(ue.name())
    assert delete() == ""
    assert ue.tracefs.status() == ""


@case(
    spec="trace.c:__remove_instance; trace_events.c:event_trace_del_tracer; "
    "trace_events_user.c:user_event_put",
    doc="events go with their last reference",
    profiles="6.4..",
    tier="full",
)
def test_removal_takes_the_last_reference(ue: UserEvents) -> None:
    """An event held only by an instance is deleted when the instance is removed."""
    instance = made(ue)
    ue.event()
    instance.enable(ue.name())
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()} # Used by ftrace\n"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"
    assert instance.remove().value == 0
    assert ue.tracefs.status(eventually=True) == ""
    assert ue.tracefs.dynamic_events() == ""


@case(
    spec="user_event_reg; trace_events_user.c:user_event_put",
    doc="events go with their last reference",
    profiles="6.4..",
    tier="full",
)
@variants("instance", "top")
def test_last_of_two(ue: UserEvents, last: str) -> None:
    """An event without a program stays, with its fields, until the last instance disables it."""
    instance = made(ue)
    event = ue.event("u16 a")
    instance.enable(ue.name())
    event.enable()
    ue.process.exit()
    listeners: dict[str, Tracefs] = {"top": ue.tracefs, "instance": instance}
    stays = listeners.pop(last)
    (goes,) = listeners.values()
    goes.disable(ue.name())
    data = ue.new_process().open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.status() == f"{ue.name()} # Used by ftrace\n"
    # The next program finds the enabled event, and no other of its name.
    assert data.register(ue.name() + " u32 b").errno == "EADDRINUSE"
    word = data.register(ue.name() + " u16 a").word
    assert word.value == 1
    assert data.write_event(0, b"\1\0").value == 6
    assert stays.records() == [ue.line("a=0x1 (1)", dump="01 00")]
    data.unregister(word)
    data.close()
    stays.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""
