"""Filters and triggers in tracefs instances: they are the instance's own, and go with it."""

from __future__ import annotations

import os

from conformance.cases.declare import case, variants
from conformance.sut.tracefs import ERROR_LOG, Instance
from conformance.sut.user_events import UserEvents

EVERY = "5.18.."
DOC = "Documentation/trace/ftrace.rst@v6.12: Instances: events of an instance are its own"
TRIGGERS = f"{DOC}, with what is set on them"
DELETING = "Documentation/trace/user_events.rst@v6.12: Deleting: not while anybody refers to it"
FILTER = "trace_events_filter.c:apply_event_filter; trace_events.c:trace_create_new_event"
TRIGGER = "trace_events_trigger.c:event_trigger_regex_write; trace_events.c:find_event_file"
REMOVE = "trace.c:__remove_instance; trace_events_trigger.c:clear_event_triggers"


def made(ue: UserEvents, stem: str = "i") -> Instance:
    """An instance that is there."""
    instance = ue.instance(stem)
    assert instance.make().errno == ""
    return instance


def shown(ue: UserEvents, *numbers: int) -> list[str]:
    """The trace lines of these values of the event `u8 a`."""
    return [ue.line(f"a=({a})", dump=f"{a:02x}") for a in numbers]


# Who may, and what is not there


@case(
    "instance.hooks_of_nothing",
    spec=TRIGGER,
    doc=TRIGGERS,
    profiles=EVERY,
    isolation="global",
)
def test_hooks_of_nothing(ue: UserEvents) -> None:
    """An instance takes no filter and no trigger of an event, or for one, that is not there."""
    instance = made(ue)
    ue.open_data().register(ue.name() + " u8 a")
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


@case(
    "instance.hooks_of_an_ordinary_user",
    spec="fs/namei.c:may_lookup; fs/tracefs/inode.c: the root directory has mode 0700",
    doc=TRIGGERS,
    profiles=EVERY,
    isolation="global",
    tier="full",
)
def test_hooks_of_an_ordinary_user(ue: UserEvents) -> None:
    """Who has no rights sets nothing in an instance, be it right or wrong: EACCES."""
    instance = made(ue)
    ue.open_data().register(ue.name() + " u8 a")
    ue.process.setuid()
    directory = instance.of(ue.process.actor).directory(ue.name())
    assert directory.set_filter("a == 1").errno == "EACCES"
    assert directory.set_filter("nonsense").errno == "EACCES"
    assert directory.trigger("traceon").errno == "EACCES"
    assert instance.directory(ue.name()).filter == "none\n"
    instance.remove()


# Filters


@case("instance.filter_refused", spec=FILTER, doc=DOC, profiles=EVERY, isolation="global")
def test_filter_refused(ue: UserEvents) -> None:
    """A filter that is wrong is told in the files of its instance, and nowhere else."""
    instance = made(ue)
    ue.open_data().register(ue.name() + " u8 a")
    ue.tracefs.write(ERROR_LOG, "\n", os.O_WRONLY | os.O_TRUNC)
    top, directory = ue.tracefs.directory(ue.name()), instance.directory(ue.name())
    assert directory.set_filter("b == 1").errno == "EINVAL"
    assert directory.filter == "b == 1\n  ^\nparse_error: Field not found\n\n"
    assert instance.errors() == (
        "event filter parse error: error: Field not found\n  Command: b == 1\n             ^\n"
    )
    assert top.filter == "none\n"
    assert ue.tracefs.errors() == ""
    instance.remove()


@case("instance.filter", spec=FILTER, doc=DOC, profiles=EVERY, isolation="global")
@variants("where", {"instance": "instance", "top": "top"})
def test_filter(ue: UserEvents, where: str) -> None:
    """A filter holds back records of its own instance, and those of the top or of it alone."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    instance.enable(ue.name())
    listeners = {"top": ue.tracefs, "instance": instance}
    filtered = listeners.pop(where)
    (other,) = listeners.values()
    assert filtered.directory(ue.name()).set_filter("a == 2").errno == ""
    for payload in (b"\1", b"\2", b"\3"):
        assert data.write_event(0, payload).value == 5
    assert filtered.records() == shown(ue, 2)
    assert other.records() == shown(ue, 1, 2, 3)
    assert other.directory(ue.name()).filter == "none\n"
    filtered.directory(ue.name()).set_filter("0")
    instance.remove()


@case(
    "instance.filter_of_a_system",
    spec="trace_events_filter.c:apply_subsystem_event_filter",
    doc=DOC,
    profiles=EVERY,
    isolation="global",
    tier="full",
)
def test_filter_of_a_system(ue: UserEvents) -> None:
    """The filter of all user events in an instance is set on those of that instance."""
    instance = made(ue)
    ue.open_data().register(ue.name() + " u8 a")
    system = instance.path("events/user_events/filter")
    assert instance.write(system, "a == 2\n").value == 7
    assert instance.directory(ue.name()).filter == "a == 2\n"
    assert ue.tracefs.directory(ue.name()).filter == "none\n"
    assert instance.write(system, "0\n").errno == ""
    assert instance.directory(ue.name()).filter == "none\n"
    instance.remove()


@case(
    "instance.filter_makes_it_look",
    spec="trace.c:trace_event_buffer_lock_reserve: trace_buffered_event",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data: dynamic fields are checked",
    profiles=EVERY,
    needs=("dynamic_fields_validated",),
    isolation="global",
)
def test_filter_makes_it_look(ue: UserEvents) -> None:
    """A filter in an instance that records nothing makes wrong payloads fail: EFAULT."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + " u8 a; __rel_loc char[] s")
    instance.enable(ue.name())
    instance.write(instance.path("tracing_on"), "0\n")
    assert data.write_event(0, b"\1\0\0\2\0xx").value == 11
    instance.directory(ue.name()).set_filter("a == 2")
    assert data.write_event(0, b"\1\0\0\2\0xx").errno == "EFAULT"
    assert data.write_event(0, b"\1\0\0\2\0x\0").value == 11
    instance.remove()


@case(
    "instance.filter_goes_with_it",
    spec="trace_events.c:__trace_remove_event_dirs, __add_event_to_tracers",
    doc=DOC,
    profiles=EVERY,
    isolation="global",
    tier="full",
)
def test_filter_goes_with_it(ue: UserEvents) -> None:
    """An instance made again under its name has none of the filters and triggers it had."""
    instance = made(ue)
    data = ue.open_data()
    event = data.register(ue.name() + " u8 a")
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
    instance.remove()


# Triggers


@case("instance.trigger_tells", spec=TRIGGER, doc=TRIGGERS, profiles=EVERY, isolation="global")
def test_trigger_tells(ue: UserEvents) -> None:
    """A trigger in an instance tells the program, and one at the top is another one."""
    instance = made(ue)
    event = ue.open_data().register(ue.name() + " u8 a")
    top, directory = ue.tracefs.directory(ue.name()), instance.directory(ue.name())
    assert directory.trigger("traceon").errno == ""
    assert (top.enabled, directory.enabled) == ("0\n", "0*\n")
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert top.trigger("traceoff:2").errno == ""
    assert (top.triggers, directory.triggers) == ("traceoff:count=2\n", "traceon:unlimited\n")
    assert directory.trigger("!traceon").errno == ""
    assert (top.enabled, directory.enabled) == ("0*\n", "0\n")
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    top.trigger("!traceoff")
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
    instance.remove()


@case(
    "instance.trigger_keeps_an_event",
    spec=f"{REMOVE}; trace_events_user.c:user_event_last_ref",
    doc=DELETING,
    profiles=EVERY,
    needs=("lasting_events",),
    isolation="global",
    facilities=("hist",),
)
@variants(
    "text",
    {"hist": "hist:keys=a", "traceon": "traceon", "conditional": "stacktrace:2 if a == 1"},
)
def test_trigger_keeps_an_event(ue: UserEvents, text: str) -> None:
    """An event with a trigger in an instance is busy, until that is removed with its triggers."""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    instance = made(ue)
    data = ue.open_data()
    assert instance.directory(ue.name()).trigger(text).errno == ""
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.command(f"-:{ue.name()} u8 a\n").errno == "EBUSY"
    assert instance.remove().value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert data.delete(ue.name()).value == 0


@case(
    "instance.trigger_is_the_last_reference",
    spec=f"{REMOVE}; trace_events_user.c:user_event_put",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: events go with their last reference",
    needs=("auto_delete",),
    isolation="global",
)
def test_trigger_is_the_last_reference(ue: UserEvents) -> None:
    """An event that only a trigger in an instance refers to goes with the instance."""
    instance = made(ue)
    ue.open_data().register(ue.name() + " u8 a")
    instance.directory(ue.name()).trigger("traceon")
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()} # Used by ftrace\n"
    assert instance.remove().value == 0
    assert ue.tracefs.status(eventually=True) == ""


@case(
    "instance.traceoff",
    spec="trace_events_trigger.c:traceoff_trigger",
    doc=TRIGGERS,
    profiles=EVERY,
    isolation="global",
)
@variants(
    "text, before, kept, after",
    {
        "traceoff": ("traceoff if a == 2", "1\n", [1, 2], "0\n"),
        "traceon": ("traceon if a == 2", "0\n", [3], "1\n"),
        "another": ("stacktrace if a == 2", "1\n", [1, 2, 3], "1\n"),
    },
)
def test_traceoff(ue: UserEvents, text: str, before: str, kept: list[int], after: str) -> None:
    """A trigger in an instance stops and starts that instance, and the top records all."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    instance.enable(ue.name())
    switch = instance.path("tracing_on")
    instance.write(switch, before)
    instance.directory(ue.name()).trigger(text)
    for payload in (b"\1", b"\2", b"\3"):
        assert data.write_event(0, payload).value == 5
    assert instance.records() == shown(ue, *kept)
    assert ue.tracefs.records() == shown(ue, 1, 2, 3)
    assert instance.read(switch).text == after
    instance.remove()


@case(
    "instance.stacktrace",
    spec="trace_events_trigger.c:stacktrace_trigger",
    doc=TRIGGERS,
    isolation="global",
    tier="full",
)
def test_stacktrace(ue: UserEvents) -> None:
    """The stack is recorded in the instance whose trigger asks for it."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    directory = instance.directory(ue.name())
    directory.trigger("stacktrace:1")
    for payload in (b"\1", b"\2"):
        data.write_event(0, payload)
    assert instance.records_and_stacks() == ["<stack trace>"]
    assert ue.tracefs.records_and_stacks() == shown(ue, 1, 2)
    assert directory.triggers == "stacktrace:count=0\n"
    instance.remove()


@case(
    "instance.snapshot",
    spec="trace_events_trigger.c:snapshot_trigger; trace.c:tracing_snapshot_instance",
    doc=TRIGGERS,
    profiles=EVERY,
    isolation="global",
    facilities=("snapshot",),
    tier="full",
)
def test_snapshot(ue: UserEvents) -> None:
    """A snapshot in an instance is of its buffer, and the instance is removed with it."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    instance.enable(ue.name())
    instance.directory(ue.name()).trigger("snapshot if a == 2")
    for payload in (b"\1", b"\2", b"\3"):
        data.write_event(0, payload)
    assert instance.snapshot() == shown(ue, 1, 2)
    assert instance.records() == shown(ue, 3)
    assert ue.tracefs.records() == shown(ue, 1, 2, 3)
    assert instance.remove().value == 0


@case(
    "instance.hist",
    spec="trace_events_hist.c:event_hist_trigger",
    doc="Documentation/trace/histogram.rst@v6.12: hist triggers; of instances it says nothing",
    profiles=EVERY,
    isolation="global",
    facilities=("hist",),
)
def test_hist(ue: UserEvents) -> None:
    """Histograms of an event at the top and in an instance count, stop and go apart."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    top, directory = ue.tracefs.directory(ue.name()), instance.directory(ue.name())
    assert directory.trigger("hist:keys=a").errno == ""
    assert top.trigger("hist:keys=a:clear").errno == "ENOENT"
    data.write_event(0, b"\1")
    assert top.hist == ""
    assert top.trigger("hist:keys=a").errno == ""
    directory.trigger("hist:keys=a:pause")
    data.write_event(0, b"\2")
    assert "{ a:          1 } hitcount:          1\n" in directory.hist
    assert "    Hits: 1\n" in directory.hist
    assert "{ a:          2 } hitcount:          1\n" in top.hist
    assert "    Hits: 1\n" in top.hist
    assert instance.remove().value == 0
    top.trigger("!hist:keys=a")


# On 7.3 a trigger that is removed gives its reference to the event it enabled back later, to
# memory that may be free by then: guests that had one are not used again.


@case(
    "instance.enable_event",
    spec="trace_events_trigger.c:event_enable_trigger_parse: find_event_file",
    doc=TRIGGERS,
    profiles=EVERY,
    isolation="fatal",
    tier="full",
)
def test_enable_event(ue: UserEvents) -> None:
    """In an instance one user event has another recorded there, and not at the top."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    other = data.register(ue.name("other") + " u8 a")
    text = f"enable_event:user_events:{ue.name('other')}"
    assert instance.directory(ue.name()).trigger(f"{text} if a == 2").errno == ""
    aims = [files.directory(ue.name("other")) for files in (ue.tracefs, instance)]
    assert [aim.enabled for aim in aims] == ["0\n", "0*\n"]
    for number in (1, 2, 3):
        data.write_event(0, bytes([number]))
        assert data.write_event(1, bytes([number])).value == 5
    assert [aim.enabled for aim in aims] == ["0\n", "1*\n"]
    lines = [ue.line(f"a=({a})", dump=f"{a:02x}", name="other") for a in (2, 3)]
    assert instance.records() == lines
    assert ue.tracefs.records() == []
    assert instance.remove().value == 0
    if ue.profile.has("remote_enable"):
        assert other.word.value == 0
    assert ue.tracefs.status().count(" # Used by") == 0
