"""Triggers on user events: enable word, counts and conditions."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.trace_text import u8_lines
from conformance.client.tracefs import TRACING_ON

SPEC = "trace_events.c:__ftrace_event_enable_disable"
DOC = (
    "events.rst@v6.12: Event triggers: command[:count] [if filter]; of a trigger that has "
    "nothing to do it says nothing"
)
case = surface("trigger", SPEC, DOC, level="detail", tier="full")


@case(level="behaviour", tier="quick")
@doc("@v6.12: Status: the bit is set while something is attached; silent about triggers")
@spec("trace_events_user.c:user_event_reg; trace_events.c:__ftrace_event_enable_disable")
@variants(
    ("traceon", "traceon"),
    ("stacktrace", "stacktrace"),
    ("conditional", "traceon if a == 1"),
    ("counted", "traceon:0"),
)
def test_tells(ue: UserEvents, text: str) -> None:
    """A trigger alone sets the enable word, and does not enable the event for recording."""
    event = ue.event("u8 a")
    assert event.directory.trigger(text).errno == ""
    assert event.directory.enabled == "0*\n"
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert event.directory.trigger(f"!{text}").errno == ""
    assert event.directory.enabled == "0\n"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(spec="trace_events_user.c:user_event_ftrace", level="behaviour", tier="quick")
@doc("@v6.12: Writing Data: silent about triggers")
def test_records_nothing(ue: UserEvents) -> None:
    """With only a trigger a write returns its count and is not recorded."""
    event = ue.event("u8 a")
    event.directory.trigger("traceon")
    assert event.write(b"\1").value == 5
    assert ue.tracefs.records() == []
    assert event.directory.trigger("!traceon").errno == ""
    assert event.write(b"\1").errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")


@case(doc="Event triggers")
def test_enabled_beside(ue: UserEvents) -> None:
    """With a trigger, enabling and disabling the event does not change the enable word."""
    event = ue.event("u8 a")
    event.directory.trigger("traceon")
    event.enable()
    assert event.directory.enabled == "1*\n"
    event.write(b"\1")
    event.disable()
    assert event.directory.enabled == "0*\n"
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert event.write(b"\2").value == 5
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case(doc="Event triggers")
def test_beside_enabled(ue: UserEvents) -> None:
    """An event enabled before its trigger was set stays enabled after its removal."""
    event = ue.event("u8 a", enabled=True)
    event.directory.trigger("stacktrace:0")
    assert event.directory.enabled == "1*\n"
    event.directory.trigger("!stacktrace")
    assert event.directory.enabled == "1\n"
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    event.write(b"\1")
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case(spec="__ftrace_event_enable_disable: sm_ref", doc="Event triggers")
def test_last_of_two(ue: UserEvents) -> None:
    """Removing the last of several triggers ends soft mode."""
    event = ue.event("u8 a")
    directory = event.directory
    directory.trigger("traceon")
    directory.trigger("stacktrace if a == 1")
    assert directory.triggers == "stacktrace:unlimited if a == 1\ntraceon:unlimited\n"
    directory.trigger("!traceon")
    assert directory.triggers == "stacktrace:unlimited if a == 1\n"
    assert directory.enabled == "0*\n"
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    directory.trigger("!stacktrace")
    assert directory.enabled == "0\n"


TARGET = "signal:signal_generate"


@case(spec="trace_events_trigger.c:event_trigger_parse_num: kstrtoul with base 0")
@doc("Event triggers: command[:count] [if filter]")
@variants(
    ("hexadecimal", "traceon:0x10", "", "traceon:count=16\n"),
    ("octal", "traceoff:010", "", "traceoff:count=8\n"),
    ("no-octal", "traceoff:08", "EINVAL", ""),
    ("none", "stacktrace:0", "", "stacktrace:count=0\n"),
    ("condition", "stacktrace:0x2 if a == 1", "", "stacktrace:count=2 if a == 1\n"),
    ("target", f"enable_event:{TARGET}:0x3", "", f"enable_event:{TARGET}:count=3\n"),
)
def test_count_bases(ue: UserEvents, text: str, errno: str, expected: str) -> None:
    """A count may be decimal, hexadecimal with 0x, or octal with 0, and is shown in decimal."""
    directory = ue.event("u8 a").directory
    assert directory.trigger(text).errno == errno
    assert directory.triggers == expected
    directory.trigger(f"!{text}")
    assert directory.enabled == "0\n"


@case(spec="trace_events_trigger.c:traceon_count_func, traceoff_count_func", isolation="global")
@variants(("traceon", "1\n"), ("traceoff", "0\n"))
def test_nothing_to_count(ue: UserEvents, kind: str, wanted: str) -> None:
    """If tracing is already as the trigger sets it, the count stays; the trigger can still fire."""
    event = ue.event("u8 a")
    other = {"1\n": "0\n", "0\n": "1\n"}[wanted]
    ue.tracefs.write(TRACING_ON, wanted)
    event.directory.trigger(f"{kind}:1")
    assert event.write(b"\1").value == 5
    assert event.directory.triggers == f"{kind}:count=1\n"
    ue.tracefs.write(TRACING_ON, other)
    event.write(b"\1")
    assert event.directory.triggers == f"{kind}:count=0\n"
    assert ue.tracefs.read(TRACING_ON).text == wanted
    ue.tracefs.write(TRACING_ON, other)
    event.write(b"\1")
    assert ue.tracefs.read(TRACING_ON).text == other


@case(spec="trace_events_trigger.c:event_enable_count_func", isolation="global")
@variants(("enable", "enable_event", "1*\n", "0*\n"), ("disable", "disable_event", "0*\n", "1*\n"))
def test_no_target_to_count(ue: UserEvents, kind: str, wanted: str, other: str) -> None:
    """If the target is already as the trigger wants it, the count stays and it can still fire."""
    event = ue.event("u8 a")
    system, name = TARGET.split(":")

    def switch(state: str) -> None:
        ue.tracefs.write(ue.tracefs.event_path(name, "enable", system), state[0])

    switch(wanted)
    assert event.directory.trigger(f"{kind}:{TARGET}:1").errno == ""
    assert event.write(b"\1").value == 5
    assert event.directory.triggers == f"{kind}:{TARGET}:count=1\n"
    switch(other)
    assert ue.tracefs.enabled(name, system=system).text == other
    event.write(b"\1")
    assert event.directory.triggers == f"{kind}:{TARGET}:count=0\n"
    assert ue.tracefs.enabled(name, system=system).text == wanted
    switch(other)
    event.write(b"\1")
    assert ue.tracefs.enabled(name, system=system).text == other
    event.directory.trigger(f"!{kind}:{TARGET}")
    switch("0")
    assert ue.tracefs.enabled(name, system=system).text == "0\n"


@case(isolation="global", facilities="hist", tier="quick")
@doc("Event triggers: command[:count] [if filter];")
@doc("of the order of trigger and record it says nothing")
@spec("trace_events_trigger.c:update_cond_flag")
@variants(
    ("condition", "stacktrace if a == 9"),
    ("behind", "stacktrace:0"),
    ("target", f"enable_event:{TARGET} if a == 9"),
    ("hist", "hist:keys=a"),
)
def test_condition_gone(ue: UserEvents, text: str) -> None:
    """With a second trigger that reads records, the event that fires traceon is not recorded."""
    event = ue.event("u8 a", enabled=True)
    assert event.directory.trigger("traceon").errno == ""
    assert event.directory.trigger(text).errno == ""
    ue.tracefs.write(TRACING_ON, "0\n")
    assert event.write(b"\1").value == 5
    assert ue.tracefs.read(TRACING_ON).text == "1\n"
    assert ue.tracefs.records() == []
    assert event.directory.trigger(f"!{text}").errno == ""
    ue.tracefs.write(TRACING_ON, "0\n")
    assert event.write(b"\2").value == 5
    assert ue.tracefs.records() == u8_lines(ue, 2)


@case(spec="trace_events_trigger.c:event_trigger_regex_write: cnt >= PAGE_SIZE")
@doc("Event triggers: command[:count] [if filter]; documents no limit")
def test_length(ue: UserEvents) -> None:
    """A trigger has up to 4095 bytes; a longer write is EINVAL and changes nothing."""
    directory = ue.event("u8 a").directory
    assert directory.trigger("traceon if a == 1".ljust(4095)).errno == "EINVAL"
    assert directory.enabled == "0\n"
    condition = " || ".join(["a == 1"] * 100)
    assert directory.trigger(f"traceon if {condition}".ljust(4094)).value == 4095
    assert directory.triggers == f"traceon:unlimited if {condition}\n"
    assert directory.trigger("!traceon".ljust(4095)).errno == "EINVAL"
    assert directory.enabled == "0*\n"
    assert directory.trigger("!traceon".ljust(4094)).value == 4095
    assert directory.enabled == "0\n"
