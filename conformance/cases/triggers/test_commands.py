"""The `trigger` file: its commands, and the actions traceon, traceoff and stacktrace."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.trace_text import u8_lines
from conformance.client.tracefs import TRACING_ON

DOC = "events.rst@v6.12: Event triggers"
case = surface("trigger", spec="trace_events_trigger.c", doc=DOC, level="detail", tier="full")

TRIGGERS = (
    "# Available triggers:\n"
    "# traceon traceoff snapshot stacktrace enable_event disable_event"
    " enable_hist disable_hist hist\n"
)


@case(spec="trigger_show", facilities="hist snapshot")
@doc("Event triggers: an empty trigger file lists what there is")
def test_available(ue: UserEvents) -> None:
    """Without triggers the file lists the available commands, enabled or not."""
    directory = ue.event().directory
    assert directory.available == TRIGGERS
    ue.tracefs.enable(ue.name())
    assert directory.available == TRIGGERS
    directory.trigger("traceon:3")
    assert directory.available == "traceon:count=3\n"
    directory.trigger("!traceon:3")
    assert directory.available == TRIGGERS


@case(spec="event_trigger_parse", tier="quick", bug="filter-errno")
@doc("Event triggers: command[:count] [if filter]")
@variants(
    ("unknown", "bogus", "EINVAL"),
    ("upper-case", "TRACEON", "EINVAL"),
    ("count-no-number", "traceon:5x", "EINVAL"),
    ("count-word", "traceon:many", "EINVAL"),
    ("count-negative", "traceon:-1", "EINVAL"),
    ("if-nothing", "traceon if", "EINVAL"),
    ("not-if", "traceon when a == 1", "EINVAL"),
    ("no-field", "traceon if b == 1", "EINVAL"),
    ("no-field-counted", "traceoff:3 if b == 1", "EINVAL"),
    ("unclosed", "traceon if (a == 1", "ENOENT"),
    ("unopened", "traceon if a == 1)", "EPERM"),
    ("unquoted", 'traceon if a == "1', "ESRCH"),
    ("enable-nothing", "enable_event", "EINVAL"),
    ("enable-system", "enable_event:task", "EINVAL"),
    ("enable-unknown", "enable_event:user_events:no_such_event", "EINVAL"),
    ("disable-count", "disable_event:task:task_newtask:x", "EINVAL"),
    ("enable-filter", "enable_event:task:task_newtask if b == 1", "EINVAL"),
)
def test_refused(ue: UserEvents, text: str, errno: str) -> None:
    """An invalid trigger is rejected, and no enable word changes."""
    event = ue.event("u8 a")
    directory = event.directory
    assert directory.trigger(text).errno == ue.bug("filter-errno", fixed="EINVAL", present=errno)
    assert directory.enabled == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="register_trigger", doc="Event triggers: one trigger of a kind at a time")
@variants(
    ("same", "traceon", "traceon", "EEXIST"),
    # Both have the same type.
    ("opposite", "traceon", "traceoff", "EEXIST"),
    ("counted", "stacktrace", "stacktrace:5", "EEXIST"),
    ("conditional", "traceoff if a == 1", "traceoff if a == 2", "EEXIST"),
    ("other", "traceon", "stacktrace", ""),
    (
        "kernel-event",
        "enable_event:task:task_newtask",
        "disable_event:task:task_newtask if a == 1",
        "EEXIST",
    ),
)
def test_twice(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """An event has one trigger per type, and traceon and traceoff are the same type."""
    directory = ue.event("u8 a").directory
    assert (directory.trigger(first).errno, directory.trigger(second).errno) == ("", errno)
    directory.trigger(f"!{first}")
    if not errno:
        directory.trigger(f"!{second}")
    assert directory.enabled == "0\n"


@case(spec="try_unregister_trigger", doc="Event triggers: ! in front removes a trigger")
def test_removed_by_another_name(ue: UserEvents) -> None:
    """Removal matches by type, whatever count and filter; removing an absent trigger succeeds."""
    directory = ue.event("u8 a").directory
    assert directory.trigger("!traceon").value == 9
    directory.trigger("traceon:3 if a == 1")
    assert directory.trigger("!stacktrace").errno == ""
    assert directory.triggers == "traceon:count=3 if a == 1\n"
    assert directory.trigger("!traceoff").errno == ""
    assert directory.enabled == "0\n"


@case(spec="event_trigger_regex_open", facilities="hist")
@doc("Event triggers: > and >> are documented as the same")
def test_truncated(ue: UserEvents) -> None:
    """Opening the file with O_TRUNC removes histograms and keeps other triggers."""
    directory = ue.event("u8 a").directory
    directory.trigger("hist:keys=a")
    directory.trigger("traceon")
    assert directory.trigger("stacktrace", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert directory.triggers == "stacktrace:unlimited\ntraceon:unlimited\n"


@case(spec="event_enable_register_trigger, event_enable_unregister_trigger", isolation="global")
@doc("Event triggers: one trigger of a kind for each event that it enables or disables")
@variants(("older", 0, 1), ("newer", 1, 0))
def test_two_targets(ue: UserEvents, removed: int, kept: int) -> None:
    """An event has one trigger per event that it enables, and each is removed separately."""
    directory = ue.event("u8 a").directory
    targets = ("signal:signal_generate", "task:task_newtask")
    for target in targets:
        assert directory.trigger(f"enable_event:{target}").errno == ""
    assert directory.triggers == (
        "enable_event:task:task_newtask:unlimited\nenable_event:signal:signal_generate:unlimited\n"
    )
    assert directory.trigger(f"!enable_event:{targets[removed]}").errno == ""
    assert directory.triggers == f"enable_event:{targets[kept]}:unlimited\n"
    shown = []
    for target in targets:
        system, name = target.split(":")
        shown.append(ue.tracefs.enabled(name, system=system).text)
    assert (shown[removed], shown[kept]) == ("0\n", "0*\n")
    assert directory.trigger(f"!disable_event:{targets[kept]}").errno == ""
    assert directory.enabled == "0\n"


@case(spec="traceoff_trigger", isolation="global")
@variants(
    ("conditional", "traceoff if a == 2", [1, 2]),
    ("always", "traceoff", [1]),
    ("never", "traceoff if a == 4", [1, 2, 3]),
    ("no-more", "traceoff:0", [1, 2, 3]),
)
def test_traceoff(ue: UserEvents, text: str, kept: list[int]) -> None:
    """The record that fires traceoff is the last recorded; later writes still return the count."""
    event = ue.event("u8 a", enabled=True)
    event.directory.trigger(text)
    for payload in (b"\1", b"\2", b"\3"):
        assert event.write(payload).value == 5
    assert ue.tracefs.records() == u8_lines(ue, *kept)


@case(spec="traceon_trigger", isolation="global")
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
    assert ue.tracefs.records() == u8_lines(ue, *kept)


@case(spec="trace.c:trace_event_buffer_lock_reserve", isolation="global")
def test_traceon_with_filter(ue: UserEvents) -> None:
    """With a filter, a record is committed after triggers: if it fires traceon, it is recorded."""
    event = ue.event("u8 a", enabled=True)
    event.directory.set_filter("a != 3")
    event.directory.trigger("traceon if a == 2")
    ue.tracefs.write(TRACING_ON, "0\n")
    for payload in (b"\1", b"\2", b"\3", b"\4"):
        assert event.write(payload).value == 5
    event.directory.trigger("!traceon")
    assert ue.tracefs.records() == u8_lines(ue, 2, 4)


@case(spec="event_trigger_count", isolation="global")
@doc("Event triggers: :count says how often a trigger acts")
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


@case(needs="dynamic_fields_validated", tier="quick")
@spec("include/linux/trace_events.h:trace_trigger_soft_disabled")
@doc("@v6.12: Writing Data: silent about dynamic fields")
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


@case(spec="register_trigger", isolation="global")
def test_without_fields(ue: UserEvents) -> None:
    """An event without fields can have triggers, with conditions on the common fields."""
    event = ue.event()
    payload = ue.dated("empty_payload", since=b"", before=b"\1")
    event.directory.trigger("traceoff if common_pid == 1")
    event.write(payload)
    assert ue.tracefs.read(TRACING_ON).text == "1\n"
    event.directory.trigger("!traceoff")
    event.directory.trigger("traceoff if common_pid > 1")
    assert event.write(payload).errno == ""
    assert ue.tracefs.read(TRACING_ON).text == "0\n"


@case(spec="stacktrace_trigger", profiles="6.4..")
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
