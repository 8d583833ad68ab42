"""The `trigger` file: which commands it accepts, what it shows, and how triggers are removed."""

from __future__ import annotations

import os

from conformance.cases.case import surface, variants
from conformance.client.user_events import UserEvents

case = surface(
    "trigger",
    spec="trace_events_trigger.c",
    doc="Documentation/trace/events.rst@v6.12: Event triggers",
    tier="full",
)

TRIGGERS = (
    "# Available triggers:\n"
    "# traceon traceoff snapshot stacktrace enable_event disable_event"
    " enable_hist disable_hist hist\n"
)


@case(
    spec="trigger_show", doc="an empty trigger file lists what there is", facilities="hist snapshot"
)
def test_available(ue: UserEvents) -> None:
    """Without triggers the file lists the available commands, whether the event is enabled or
    not.
    """
    directory = ue.event().directory
    assert directory.available == TRIGGERS
    ue.tracefs.enable(ue.name())
    assert directory.available == TRIGGERS
    directory.trigger("traceon:3")
    assert directory.available == "traceon:count=3\n"
    directory.trigger("!traceon:3")
    assert directory.available == TRIGGERS


@case(spec="event_trigger_parse", doc="command[:count] [if filter]", tier="quick")
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
    assert directory.trigger(text).errno == errno
    assert directory.enabled == "0\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="register_trigger", doc="one trigger of a kind at a time")
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
    assert directory.trigger(first).errno == ""
    assert directory.trigger(second).errno == errno
    directory.trigger(f"!{first}")
    if not errno:
        directory.trigger(f"!{second}")
    assert directory.enabled == "0\n"


@case(spec="try_unregister_trigger", doc="! in front removes a trigger")
def test_removed_by_another_name(ue: UserEvents) -> None:
    """Removal matches by type, whatever the count and filter; removing an absent trigger
    succeeds.
    """
    directory = ue.event("u8 a").directory
    assert directory.trigger("!traceon").value == 9
    directory.trigger("traceon:3 if a == 1")
    assert directory.trigger("!stacktrace").errno == ""
    assert directory.triggers == "traceon:count=3 if a == 1\n"
    assert directory.trigger("!traceoff").errno == ""
    assert directory.enabled == "0\n"


@case(spec="event_trigger_regex_open", doc="> and >> are documented as the same", facilities="hist")
def test_truncated(ue: UserEvents) -> None:
    """Opening the file with O_TRUNC removes histograms and keeps other triggers."""
    directory = ue.event("u8 a").directory
    directory.trigger("hist:keys=a")
    directory.trigger("traceon")
    assert directory.trigger("stacktrace", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert directory.triggers == "stacktrace:unlimited\ntraceon:unlimited\n"


@case(
    spec="event_enable_register_trigger, event_enable_unregister_trigger",
    doc="one trigger of a kind for each event that it enables or disables",
    isolation="global",
)
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
