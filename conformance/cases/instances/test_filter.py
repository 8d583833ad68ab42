"""Filters in tracefs instances: each instance has its own."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.error_log import clear_errors
from conformance.cases.support.instances import enabled_in, made
from conformance.cases.support.trace_text import shown
from conformance.client.user_events import UserEvents

case = surface(
    "instance",
    spec="trace_events_filter.c:apply_event_filter; trace_events.c:trace_create_new_event",
    doc="Documentation/trace/ftrace.rst@v6.12: Instances: events of an instance are its own",
    tier="full",
    isolation="global",
)


@case
def test_filter_refused(ue: UserEvents) -> None:
    """An invalid filter is reported in the files of its instance only."""
    instance = made(ue)
    event = ue.event("u8 a")
    clear_errors(ue)
    top, directory = event.directory, instance.directory(ue.name())
    assert directory.set_filter("b == 1").errno == "EINVAL"
    assert directory.filter == "b == 1\n  ^\nparse_error: Field not found\n\n"
    assert instance.errors() == (
        "event filter parse error: error: Field not found\n  Command: b == 1\n             ^\n"
    )
    assert top.filter == "none\n"
    assert ue.tracefs.errors() == ""


@case
@variants("instance", "top")
def test_filter(ue: UserEvents, where: str) -> None:
    """A filter rejects records of its own instance only, whether that is the top or another."""
    instance = made(ue)
    data = enabled_in(ue, "u8 a", ue.tracefs, instance)
    listeners = {"top": ue.tracefs, "instance": instance}
    filtered = listeners.pop(where)
    (other,) = listeners.values()
    assert filtered.directory(ue.name()).set_filter("a == 2").errno == ""
    for payload in (b"\1", b"\2", b"\3"):
        assert data.write_event(0, payload).value == 5
    assert filtered.records() == shown(ue, 2)
    assert other.records() == shown(ue, 1, 2, 3)
    assert other.directory(ue.name()).filter == "none\n"


@case(spec="trace_events_filter.c:apply_subsystem_event_filter")
def test_filter_of_a_system(ue: UserEvents) -> None:
    """The filter of the system in an instance is set on the events of that instance."""
    instance = made(ue)
    event = ue.event("u8 a")
    system = instance.path("events/user_events/filter")
    assert instance.write(system, "a == 2\n").value == 7
    assert instance.directory(ue.name()).filter == "a == 2\n"
    assert event.directory.filter == "none\n"
    assert instance.write(system, "0\n").errno == ""
    assert instance.directory(ue.name()).filter == "none\n"


@case(
    spec="trace.c:trace_event_buffer_lock_reserve: trace_buffered_event",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: dynamic fields are checked",
    needs="dynamic_fields_validated",
)
def test_filter_makes_it_look(ue: UserEvents) -> None:
    """A filter in an instance that records nothing still makes malformed payloads fail: EFAULT."""
    instance = made(ue)
    data = enabled_in(ue, "u8 a; __rel_loc char[] s", instance)
    instance.write(instance.path("tracing_on"), "0\n")
    assert data.write_event(0, b"\1\0\0\2\0xx").value == 11
    instance.directory(ue.name()).set_filter("a == 2")
    assert data.write_event(0, b"\1\0\0\2\0xx").errno == "EFAULT"
    assert data.write_event(0, b"\1\0\0\2\0x\0").value == 11
