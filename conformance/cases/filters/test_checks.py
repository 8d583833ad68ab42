"""Payload validation of an event with a filter: it happens whatever the filter rejects."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.client.user_events import UserEvents

case = surface(
    "filter",
    spec="trace.c:trace_event_buffer_lock_reserve",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data",
    needs="dynamic_fields_validated",
)


@case(spec="trace_events_user.c:user_event_validate", doc="dynamic fields are checked")
def test_checked_first(ue: UserEvents) -> None:
    """A record that the filter would reject is validated first: EFAULT if it is malformed."""
    event = ue.event("u8 a; __rel_loc char[] s", enabled=True)
    assert event.directory.set_filter("a == 1").errno == ""
    assert event.write(b"\2\0\0\2\0x\0").value == 11
    assert event.write(b"\2\0\0\2\0xx").errno == "EFAULT"
    assert event.write(b"\1\0\0\3\0x\0").errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(doc="Documentation/trace/ftrace.rst@v6.12: tracing_on: 0 stops recording", isolation="global")
def test_checked_while_tracing_is_off(ue: UserEvents) -> None:
    """With tracing off a malformed payload is not validated, unless there is a filter."""
    event = ue.event("__rel_loc char[] s", enabled=True)
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "0\n")
    assert event.write(b"\0\0\2\0xx").value == 10
    event.directory.set_filter("common_pid > 1")
    assert event.write(b"\0\0\2\0xx").errno == "EFAULT"
    assert event.write(b"\0\0\2\0x\0").value == 10
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "1\n")
    assert ue.tracefs.records() == []


@case(spec="max_len", doc="documents no limit")
@variants(("checked", 4080, "EFAULT"), ("dropped", 4081, ""))
def test_long_records(ue: UserEvents, size: int, errno: str) -> None:
    """With a filter, payloads of up to 4080 bytes are validated, though over 4064 none is
    recorded.
    """
    event = ue.event("__rel_loc char[] s", enabled=True)
    event.directory.set_filter("common_pid > 1")
    assert event.write(b"\0\0\4\0".ljust(size, b"x")).errno == errno
    assert event.write(b"\0\0\4\0".ljust(size, b"\0")).value == size + 4
    assert ue.tracefs.records() == []
