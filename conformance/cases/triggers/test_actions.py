"""Trigger actions on a write: traceon, traceoff and stacktrace."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.trace_text import shown
from conformance.client.tracefs import TRACING_ON
from conformance.client.user_events import UserEvents

case = surface(
    "trigger",
    spec="trace_events_trigger.c",
    doc="Documentation/trace/events.rst@v6.12: Event triggers",
    tier="full",
    isolation="global",
)


@case(spec="traceoff_trigger")
@variants(
    ("conditional", "traceoff if a == 2", [1, 2]),
    ("always", "traceoff", [1]),
    ("never", "traceoff if a == 4", [1, 2, 3]),
    ("no-more", "traceoff:0", [1, 2, 3]),
)
def test_traceoff(ue: UserEvents, text: str, kept: list[int]) -> None:
    """The record that fires traceoff is the last one recorded; later writes still return the
    count.
    """
    event = ue.event("u8 a", enabled=True)
    event.directory.trigger(text)
    for payload in (b"\1", b"\2", b"\3"):
        assert event.write(payload).value == 5
    assert ue.tracefs.records() == shown(ue, *kept)


@case(spec="traceon_trigger", tier="quick")
@variants(
    # Before room is reserved.
    ("always", "traceon", [1, 2, 3]),
    # With room reserved that is never read.
    ("conditional", "traceon if a == 2", [3]),
    ("no-more", "traceon:0", []),
)
def test_traceon(ue: UserEvents, text: str, kept: list[int]) -> None:
    """The record that fires traceon is the first one recorded; with a condition it is the next."""
    event = ue.event("u8 a", enabled=True)
    event.directory.trigger(text)
    ue.tracefs.write(TRACING_ON, "0\n")
    for payload in (b"\1", b"\2", b"\3"):
        assert event.write(payload).value == 5
    event.directory.trigger("!traceon")
    ue.tracefs.write(TRACING_ON, "1\n")
    assert ue.tracefs.records() == shown(ue, *kept)


@case(spec="trace.c:trace_event_buffer_lock_reserve")
def test_traceon_with_filter(ue: UserEvents) -> None:
    """With a filter, records are committed after triggers: the one that fires traceon is
    recorded.
    """
    event = ue.event("u8 a", enabled=True)
    event.directory.set_filter("a != 3")
    event.directory.trigger("traceon if a == 2")
    ue.tracefs.write(TRACING_ON, "0\n")
    for payload in (b"\1", b"\2", b"\3", b"\4"):
        assert event.write(payload).value == 5
    event.directory.trigger("!traceon")
    assert ue.tracefs.records() == shown(ue, 2, 4)


@case(spec="event_trigger_count", doc=":count says how often a trigger acts")
def test_counts(ue: UserEvents) -> None:
    """A count decreases when the trigger changes something; at 0 it no longer fires."""
    event = ue.event("u8 a")
    event.directory.trigger("traceoff:2")
    event.write(b"\1")
    assert event.directory.triggers == "traceoff:count=1\n"
    assert ue.tracefs.read(TRACING_ON).text == "0\n"
    event.write(b"\1")
    assert event.directory.triggers == "traceoff:count=1\n"
    ue.tracefs.write(TRACING_ON, "1\n")
    event.write(b"\1")
    ue.tracefs.write(TRACING_ON, "1\n")
    event.write(b"\1")
    assert event.directory.triggers == "traceoff:count=0\n"
    assert ue.tracefs.read(TRACING_ON).text == "1\n"


@case(
    spec="include/linux/trace_events.h:trace_trigger_soft_disabled",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: dynamic fields are checked",
    needs="dynamic_fields_validated",
    tier="quick",
    isolation="events",
)
@variants(
    ("looks-at-it", "traceon if common_pid == 1", "EFAULT"),
    ("does-not", "traceon", ""),
    ("comes-behind", "stacktrace", "EFAULT"),
)
def test_checked(ue: UserEvents, text: str, errno: str) -> None:
    """With only a trigger, a payload is validated if the trigger reads records or fires after."""
    event = ue.event("__rel_loc char[] s")
    event.directory.trigger(text)
    assert event.write(b"\0\0\2\0xx").errno == errno
    assert event.write(b"\0\0\2\0x\0").value == 10


@case(spec="register_trigger")
def test_without_fields(ue: UserEvents) -> None:
    """An event without fields can have triggers, with conditions on the common fields."""
    event = ue.event()
    directory = event.directory
    payload = ue.dated("empty_payload", since=b"", before=b"\1")
    directory.trigger("traceoff if common_pid == 1")
    event.write(payload)
    assert ue.tracefs.read(TRACING_ON).text == "1\n"
    directory.trigger("!traceoff")
    directory.trigger("traceoff if common_pid > 1")
    assert event.write(payload).errno == ""
    assert ue.tracefs.read(TRACING_ON).text == "0\n"


@case(spec="stacktrace_trigger", profiles="6.4..", isolation="events")
@variants(
    ("behind-the-record", True, "stacktrace if a == 2", ["1", "2", "<stack trace>", "3"]),
    ("without-record", False, "stacktrace if a == 2", ["<stack trace>"]),
    ("counted", True, "stacktrace:1", ["1", "<stack trace>", "2", "3"]),
)
def test_stacktrace(ue: UserEvents, enabled: bool, text: str, kept: list[str]) -> None:
    """The kernel stack is recorded after the record, and also if the record itself is not."""
    event = ue.event("u8 a")
    if enabled:
        event.enable()
    event.directory.trigger(text)
    for payload in (b"\1", b"\2", b"\3"):
        event.write(payload)
    event.directory.trigger("!stacktrace")
    lines = [ue.line(f"a=({each})") if len(each) == 1 else each for each in kept]
    assert ue.tracefs.records_and_stacks() == lines
