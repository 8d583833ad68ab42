"""Triggers on user events without enabling them: the enable word is set, nothing is recorded."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.client.user_events import UserEvents

case = surface(
    "trigger",
    spec="trace_events.c:__ftrace_event_enable_disable",
    doc="Documentation/trace/events.rst@v6.12: Event triggers",
)


@case(doc="Documentation/trace/user_events.rst@v6.12: Status: tools that attach show there")
@variants(
    ("traceon", "traceon"),
    ("stacktrace", "stacktrace"),
    ("conditional", "traceon if a == 1"),
    ("counted", "traceon:0"),
)
def test_tells(ue: UserEvents, text: str) -> None:
    """A trigger alone sets the enable word, and does not enable the event for recording."""
    event = ue.event("u8 a")
    directory = event.directory
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


@case(spec="trace_events_user.c:user_event_ftrace")
def test_records_nothing(ue: UserEvents) -> None:
    """With only a trigger a write returns its count and is not recorded."""
    event = ue.event("u8 a")
    event.directory.trigger("traceon")
    assert event.write(b"\1").value == 5
    assert ue.tracefs.records() == []
    assert event.directory.trigger("!traceon").errno == ""
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert event.write(b"\1").errno == errno


@case(tier="full")
def test_enabled_beside(ue: UserEvents) -> None:
    """With a trigger, enabling and disabling the event does not change the enable word."""
    event = ue.event("u8 a")
    directory = event.directory
    directory.trigger("traceon")
    event.enable()
    assert directory.enabled == "1*\n"
    event.write(b"\1")
    event.disable()
    assert directory.enabled == "0*\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    assert event.write(b"\2").value == 5
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case(tier="full")
def test_beside_enabled(ue: UserEvents) -> None:
    """An event enabled before its trigger was set stays enabled after its removal."""
    event = ue.event("u8 a", enabled=True)
    directory = event.directory
    directory.trigger("stacktrace:0")
    assert directory.enabled == "1*\n"
    directory.trigger("!stacktrace")
    assert directory.enabled == "1\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    event.write(b"\1")
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case(spec="sm_ref", tier="full")
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
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    directory.trigger("!stacktrace")
    assert directory.enabled == "0\n"
