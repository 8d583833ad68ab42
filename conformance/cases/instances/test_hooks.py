"""Filters and triggers in tracefs instances: where they are rejected, and when they go away."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.cases.support.instances import made
from conformance.client.user_events import UserEvents

case = surface(
    "instance",
    spec="fs/namei.c",
    doc="Documentation/trace/ftrace.rst@v6.12: Instances: events of an instance are its own, "
    "with what is set on them",
    isolation="global",
)


@case(spec="trace_events_trigger.c:event_trigger_regex_write; trace_events.c:find_event_file")
def test_hooks_of_nothing(ue: UserEvents) -> None:
    """An instance rejects filters and triggers of an event, or on a field, that does not exist."""
    instance = made(ue)
    ue.event("u8 a")
    nothing, directory = instance.directory(ue.name("none")), instance.directory(ue.name())
    assert nothing.set_filter("a == 1").errno == "ENOENT"
    assert nothing.trigger("traceon").errno == "ENOENT"
    unknown = f"enable_event:user_events:{ue.name('none')}"
    assert directory.trigger(unknown).errno == "EINVAL"
    assert directory.trigger(f"!{unknown}").errno == "EINVAL"
    assert directory.enabled == "0\n"
    instance.remove()
    assert directory.set_filter("a == 1").errno == "ENOENT"
    assert directory.trigger("traceon").errno == "ENOENT"


@case(spec="may_lookup; fs/tracefs/inode.c: the root directory has mode 0700", tier="full")
def test_hooks_of_an_ordinary_user(ue: UserEvents) -> None:
    """Without permission nothing can be set in an instance, valid or not: EACCES."""
    instance = made(ue)
    ue.event("u8 a")
    ue.process.setuid()
    directory = instance.of(ue.process.actor).directory(ue.name())
    assert directory.set_filter("a == 1").errno == "EACCES"
    assert directory.set_filter("nonsense").errno == "EACCES"
    assert directory.trigger("traceon").errno == "EACCES"
    assert instance.directory(ue.name()).filter == "none\n"


@case(
    spec="trace_events.c:__trace_remove_event_dirs, __add_event_to_tracers",
    doc="Documentation/trace/ftrace.rst@v6.12: Instances: events of an instance are its own",
    tier="full",
)
def test_filter_goes_with_it(ue: UserEvents) -> None:
    """An instance created again under its old name has none of its filters and triggers."""
    instance = made(ue)
    event = ue.event("u8 a")
    directory = instance.directory(ue.name())
    directory.set_filter("a == 2")
    directory.trigger("traceon if a == 1")
    assert instance.remove().value == 0
    made(ue)
    assert directory.filter == "none\n"
    assert directory.triggers == ""
    assert directory.enabled == "0\n"
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
