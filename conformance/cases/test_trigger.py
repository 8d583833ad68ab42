"""Triggers on user events: who is told of them, what they do, and how they go."""

from __future__ import annotations

import os

from conformance.cases.declare import case, variants
from conformance.sut.tracefs import TRACING_ON
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/events.rst@v6.12: Event triggers"
STATUS = "Documentation/trace/user_events.rst@v6.12: Status: tools that attach show there"
SOFT = "trace_events.c:__ftrace_event_enable_disable"
REGISTER = "trace_events_trigger.c:register_trigger"
PARSE = "trace_events_trigger.c:event_trigger_parse"
EVERY = "5.18.."
TRIGGERS = (
    "# Available triggers:\n"
    "# traceon traceoff snapshot stacktrace enable_event disable_event"
    " enable_hist disable_hist hist\n"
)


@case("trigger.tells", spec=SOFT, doc=STATUS, profiles=EVERY)
@variants(
    "text",
    {
        "traceon": "traceon",
        "stacktrace": "stacktrace",
        "conditional": "traceon if a == 1",
        "counted": "traceon:0",
    },
)
def test_tells(ue: UserEvents, text: str) -> None:
    """A trigger alone tells the program that somebody listens, and enables nothing."""
    data = ue.open_data()
    event = data.register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    assert directory.trigger(text).errno == ""
    assert directory.enabled == "0*\n"
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    assert directory.trigger(f"!{text}").errno == ""
    assert directory.enabled == "0\n"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0


@case(
    "trigger.records_nothing", spec="trace_events_user.c:user_event_ftrace", doc=DOC, profiles=EVERY
)
def test_records_nothing(ue: UserEvents) -> None:
    """What is written while there is a trigger alone is counted and not recorded."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    directory.trigger("traceon")
    assert data.write_event(0, b"\1").value == 5
    assert ue.tracefs.records() == []
    assert directory.trigger("!traceon").errno == ""
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, b"\1").errno == errno


@case("trigger.enabled_beside", spec=SOFT, doc=DOC, profiles=EVERY)
def test_enabled_beside(ue: UserEvents) -> None:
    """Beside a trigger the event is enabled and disabled, which the program is not told."""
    data = ue.open_data()
    event = data.register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    directory.trigger("traceon")
    ue.tracefs.enable(ue.name())
    assert directory.enabled == "1*\n"
    data.write_event(0, b"\1")
    ue.tracefs.disable(ue.name())
    assert directory.enabled == "0*\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    assert data.write_event(0, b"\2").value == 5
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case("trigger.beside_enabled", spec=SOFT, doc=DOC, profiles=EVERY)
def test_beside_enabled(ue: UserEvents) -> None:
    """An event that was enabled before its trigger came is so after it has gone."""
    data = ue.open_data()
    event = data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    directory = ue.tracefs.directory(ue.name())
    directory.trigger("stacktrace:0")
    assert directory.enabled == "1*\n"
    directory.trigger("!stacktrace")
    assert directory.enabled == "1\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    data.write_event(0, b"\1")
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case("trigger.last_of_two", spec=f"{SOFT}: sm_ref", doc=DOC, profiles=EVERY)
def test_last_of_two(ue: UserEvents) -> None:
    """Of several triggers the last that is removed takes the soft mode away."""
    event = ue.open_data().register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    directory.trigger("traceon")
    directory.trigger("stacktrace if a == 1")
    assert directory.triggers == "stacktrace:unlimited if a == 1\ntraceon:unlimited\n"
    directory.trigger("!traceon")
    assert directory.triggers == "stacktrace:unlimited if a == 1\n"
    assert directory.enabled == "0*\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    directory.trigger("!stacktrace")
    assert directory.enabled == "0\n"


@case(
    "trigger.available",
    spec="trace_events_trigger.c:trigger_show",
    doc=f"{DOC}: an empty trigger file lists what there is",
    profiles=EVERY,
    facilities=("hist", "snapshot"),
)
def test_available(ue: UserEvents) -> None:
    """Without any the file shows which triggers there are, be the event enabled or not."""
    ue.open_data().register(ue.name())
    directory = ue.tracefs.directory(ue.name())
    assert directory.available == TRIGGERS
    ue.tracefs.enable(ue.name())
    assert directory.available == TRIGGERS
    directory.trigger("traceon:3")
    assert directory.available == "traceon:count=3\n"
    directory.trigger("!traceon:3")
    assert directory.available == TRIGGERS


@case("trigger.refused", spec=PARSE, doc=f"{DOC}: command[:count] [if filter]", profiles=EVERY)
@variants(
    "text, errno",
    {
        "unknown": ("bogus", "EINVAL"),
        "upper-case": ("TRACEON", "EINVAL"),
        "count-no-number": ("traceon:5x", "EINVAL"),
        "count-word": ("traceon:many", "EINVAL"),
        "count-negative": ("traceon:-1", "EINVAL"),
        "if-nothing": ("traceon if", "EINVAL"),
        "not-if": ("traceon when a == 1", "EINVAL"),
        "no-field": ("traceon if b == 1", "EINVAL"),
        "no-field-counted": ("traceoff:3 if b == 1", "EINVAL"),
        "unclosed": ("traceon if (a == 1", "ENOENT"),
        "unopened": ("traceon if a == 1)", "EPERM"),
        "unquoted": ('traceon if a == "1', "ESRCH"),
        "enable-nothing": ("enable_event", "EINVAL"),
        "enable-system": ("enable_event:task", "EINVAL"),
        "enable-unknown": ("enable_event:user_events:no_such_event", "EINVAL"),
        "disable-count": ("disable_event:task:task_newtask:x", "EINVAL"),
        "enable-filter": ("enable_event:task:task_newtask if b == 1", "EINVAL"),
    },
)
def test_refused(ue: UserEvents, text: str, errno: str) -> None:
    """A trigger that cannot be is refused, and nobody is told of anything."""
    event = ue.open_data().register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    assert directory.trigger(text).errno == errno
    assert directory.enabled == "0\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case("trigger.twice", spec=REGISTER, doc=f"{DOC}: one trigger of a kind at a time", profiles=EVERY)
@variants(
    "first, second, errno",
    {
        "same": ("traceon", "traceon", "EEXIST"),
        # Both are of one type.
        "opposite": ("traceon", "traceoff", "EEXIST"),
        "counted": ("stacktrace", "stacktrace:5", "EEXIST"),
        "conditional": ("traceoff if a == 1", "traceoff if a == 2", "EEXIST"),
        "other": ("traceon", "stacktrace", ""),
        "kernel-event": (
            "enable_event:task:task_newtask",
            "disable_event:task:task_newtask if a == 1",
            "EEXIST",
        ),
    },
)
def test_twice(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """An event has one trigger of a type, and traceon and traceoff are of one type."""
    ue.open_data().register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    assert directory.trigger(first).errno == ""
    assert directory.trigger(second).errno == errno
    directory.trigger(f"!{first}")
    if not errno:
        directory.trigger(f"!{second}")
    assert directory.enabled == "0\n"


@case(
    "trigger.removed_by_another_name",
    spec="trace_events_trigger.c:try_unregister_trigger",
    doc=f"{DOC}: ! in front removes a trigger",
    profiles=EVERY,
)
def test_removed_by_another_name(ue: UserEvents) -> None:
    """Removing goes by type, whatever count and filter say; removing what is not there succeeds."""
    ue.open_data().register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    assert directory.trigger("!traceon").value == 9
    directory.trigger("traceon:3 if a == 1")
    assert directory.trigger("!stacktrace").errno == ""
    assert directory.triggers == "traceon:count=3 if a == 1\n"
    assert directory.trigger("!traceoff").errno == ""
    assert directory.enabled == "0\n"


@case(
    "trigger.traceoff",
    spec="trace_events_trigger.c:traceoff_trigger",
    doc=DOC,
    profiles=EVERY,
    isolation="global",
)
@variants(
    "text, kept",
    {
        "conditional": ("traceoff if a == 2", [1, 2]),
        "always": ("traceoff", [1]),
        "never": ("traceoff if a == 4", [1, 2, 3]),
        "no-more": ("traceoff:0", [1, 2, 3]),
    },
)
def test_traceoff(ue: UserEvents, text: str, kept: list[int]) -> None:
    """The record that stops the recording is the last one; the others are counted all the same."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    directory = ue.tracefs.directory(ue.name())
    directory.trigger(text)
    for payload in (b"\1", b"\2", b"\3"):
        assert data.write_event(0, payload).value == 5
    lines = [ue.line(f"a=({a})", dump=f"{a:02x}") for a in kept]
    assert ue.tracefs.records() == lines
    directory.trigger("!traceoff")
    ue.tracefs.write(TRACING_ON, "1\n")


@case(
    "trigger.traceon",
    spec="trace_events_trigger.c:traceon_trigger",
    doc=DOC,
    profiles=EVERY,
    isolation="global",
)
@variants(
    "text, kept",
    {
        # Before room is asked for.
        "always": ("traceon", [1, 2, 3]),
        # With room taken where nobody looks.
        "conditional": ("traceon if a == 2", [3]),
        "no-more": ("traceon:0", []),
    },
)
def test_traceon(ue: UserEvents, text: str, kept: list[int]) -> None:
    """The record that starts the recording is the first one, or with a condition the next is."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    directory = ue.tracefs.directory(ue.name())
    directory.trigger(text)
    ue.tracefs.write(TRACING_ON, "0\n")
    for payload in (b"\1", b"\2", b"\3"):
        assert data.write_event(0, payload).value == 5
    directory.trigger("!traceon")
    ue.tracefs.write(TRACING_ON, "1\n")
    lines = [ue.line(f"a=({a})", dump=f"{a:02x}") for a in kept]
    assert ue.tracefs.records() == lines


@case(
    "trigger.traceon_with_filter",
    spec="trace.c:trace_event_buffer_lock_reserve",
    doc=DOC,
    profiles=EVERY,
    isolation="global",
)
def test_traceon_with_filter(ue: UserEvents) -> None:
    """With a filter records wait until triggers have acted: the one that starts it is recorded."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    directory = ue.tracefs.directory(ue.name())
    directory.set_filter("a != 3")
    directory.trigger("traceon if a == 2")
    ue.tracefs.write(TRACING_ON, "0\n")
    for payload in (b"\1", b"\2", b"\3", b"\4"):
        assert data.write_event(0, payload).value == 5
    directory.trigger("!traceon")
    lines = [ue.line(f"a=({a})", dump=f"{a:02x}") for a in (2, 4)]
    assert ue.tracefs.records() == lines
    ue.tracefs.write(TRACING_ON, "1\n")


@case(
    "trigger.counts",
    spec="trace_events_trigger.c:event_trigger_count",
    doc=f"{DOC}: :count says how often a trigger acts",
    profiles=EVERY,
    isolation="global",
)
def test_counts(ue: UserEvents) -> None:
    """A count goes down when the trigger changes something, and at 0 it acts no more."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    directory.trigger("traceoff:2")
    data.write_event(0, b"\1")
    assert directory.triggers == "traceoff:count=1\n"
    assert ue.tracefs.read(TRACING_ON).text == "0\n"
    data.write_event(0, b"\1")
    assert directory.triggers == "traceoff:count=1\n"
    ue.tracefs.write(TRACING_ON, "1\n")
    data.write_event(0, b"\1")
    ue.tracefs.write(TRACING_ON, "1\n")
    data.write_event(0, b"\1")
    assert directory.triggers == "traceoff:count=0\n"
    assert ue.tracefs.read(TRACING_ON).text == "1\n"
    directory.trigger("!traceoff")


@case(
    "trigger.checked",
    spec="include/linux/trace_events.h:trace_trigger_soft_disabled",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: dynamic fields are checked",
    profiles=EVERY,
    needs=("dynamic_fields_validated",),
)
@variants(
    "text, errno",
    {
        "looks-at-it": ("traceon if common_pid == 1", "EFAULT"),
        "does-not": ("traceon", ""),
        "comes-behind": ("stacktrace", "EFAULT"),
    },
)
def test_checked(ue: UserEvents, text: str, errno: str) -> None:
    """With a trigger alone a payload is checked if the trigger looks at records or comes behind."""
    data = ue.open_data()
    data.register(ue.name() + " __rel_loc char[] s")
    directory = ue.tracefs.directory(ue.name())
    directory.trigger(text)
    assert data.write_event(0, b"\0\0\2\0xx").errno == errno
    assert data.write_event(0, b"\0\0\2\0x\0").value == 10
    directory.trigger(f"!{text}")


@case("trigger.without_fields", spec=REGISTER, doc=DOC, profiles=EVERY, isolation="global")
def test_without_fields(ue: UserEvents) -> None:
    """An event without fields can have triggers, and conditions on who writes it."""
    data = ue.open_data()
    data.register(ue.name())
    directory = ue.tracefs.directory(ue.name())
    payload = ue.dated("empty_payload", since=b"", before=b"\1")
    directory.trigger("traceoff if common_pid == 1")
    data.write_event(0, payload)
    assert ue.tracefs.read(TRACING_ON).text == "1\n"
    directory.trigger("!traceoff")
    directory.trigger("traceoff if common_pid > 1")
    assert data.write_event(0, payload).errno == ""
    assert ue.tracefs.read(TRACING_ON).text == "0\n"
    directory.trigger("!traceoff")
    ue.tracefs.write(TRACING_ON, "1\n")


@case("trigger.stacktrace", spec="trace_events_trigger.c:stacktrace_trigger", doc=DOC)
@variants(
    "enabled, text, kept",
    {
        "behind-the-record": (True, "stacktrace if a == 2", ["1", "2", "<stack trace>", "3"]),
        "without-record": (False, "stacktrace if a == 2", ["<stack trace>"]),
        "counted": (True, "stacktrace:1", ["1", "<stack trace>", "2", "3"]),
    },
)
def test_stacktrace(ue: UserEvents, enabled: bool, text: str, kept: list[str]) -> None:
    """The stack of the kernel is recorded behind the record, and where that is not recorded too."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    if enabled:
        ue.tracefs.enable(ue.name())
    directory.trigger(text)
    for payload in (b"\1", b"\2", b"\3"):
        data.write_event(0, payload)
    directory.trigger("!stacktrace")
    lines = [ue.line(f"a=({each})") if len(each) == 1 else each for each in kept]
    assert ue.tracefs.records_and_stacks() == lines


@case(
    "trigger.truncated",
    spec="trace_events_trigger.c:event_trigger_regex_open",
    doc=f"{DOC}: > and >> are told to be the same",
    profiles=EVERY,
    facilities=("hist",),
)
def test_truncated(ue: UserEvents) -> None:
    """Opening the file for truncation takes histograms away and leaves other triggers."""
    ue.open_data().register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    directory.trigger("hist:keys=a")
    directory.trigger("traceon")
    assert directory.trigger("stacktrace", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert directory.triggers == "stacktrace:unlimited\ntraceon:unlimited\n"
    directory.trigger("!stacktrace")
    directory.trigger("!traceon")
