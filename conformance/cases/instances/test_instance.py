"""tracefs instances as tracers: each has its own `enable`, which holds the event."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance
from conformance.cases.support.status_text import tracepoints, unique_id
from conformance.client.tracefs import Tracefs

DOC = "Deleting: events auto-delete when no references are left, in user and kernel space"
case = surface("instance", doc=DOC, level="contract", tier="full", isolation="global")


def one(ue: UserEvents, name: str = "e") -> str:
    """The trace line of the payload 01 00."""
    return ue.line("a=0x1 (1)", name=name, dump="01 00")


@case(spec="user_event_reg; trace_events.c:event_enable_write", level="behaviour", tier="quick")
@doc("Status: the bit is updated as tools attach; silent about instances")
def test_has_its_own_switch(ue: UserEvents) -> None:
    """Enabling an event in an instance sets its enable word, and enables it nowhere else."""
    instance, event = create_instance(ue), ue.event("u16 a")
    assert instance.enabled(ue.name()).text == "0\n"
    assert instance.enable(ue.name()).value == 2
    assert (instance.enabled(ue.name()).text, ue.tracefs.enabled(ue.name()).text) == ("1\n", "0\n")
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    instance.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert instance.remove().errno == ""


@case(spec="update_enable_bit_for", level="behaviour")
@doc("Status: the bit is set while something is attached; silent about the error of a write")
@variants("instance", "top")
def test_two_listeners(ue: UserEvents, ended_first: str) -> None:
    """An event enabled at the top and in an instance shows one user, until both disable it."""
    instance, event = create_instance(ue), ue.event("u16 a")
    instance.enable(ue.name())
    event.enable()
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    listeners: dict[str, Tracefs] = {"top": ue.tracefs, "instance": instance}
    first = listeners.pop(ended_first)
    (last,) = listeners.values()
    first.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert event.write(b"\1\0").value == 6
    last.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert event.write(b"\1\0").errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert last.records() == [one(ue)]
    assert first.records() == []


@case(spec="user_event_ftrace", doc="Writing Data: silent about instances", level="behaviour")
def test_records(ue: UserEvents) -> None:
    """One write is recorded once in each instance that has the event enabled, and in no other."""
    first, second = create_instance(ue, "i"), create_instance(ue, "j")
    data = ue.register(a="u16 a", b="u16 a")
    first.enable(ue.name("a"))
    second.enable(ue.name("a"))
    second.enable(ue.name("b"))
    assert (data.write_event(0, b"\1\0").value, data.write_event(1, b"\1\0").value) == (6, 6)
    assert first.records() == [one(ue, "a")]
    assert second.records() == [one(ue, "a"), one(ue, "b")]
    assert ue.tracefs.records() == []
    second.clear_trace()
    assert second.records() == []
    assert first.records() == [one(ue, "a")]


@case(level="behaviour", profiles="6.4..", needs="multi_format")
@doc("Registering: each pair of name and format has its tracepoint;")
@doc("silent about the error of a write")
@spec("user_event_set_tp_name; trace_events.c:__add_event_to_tracers")
def test_multi_format(ue: UserEvents) -> None:
    """Each format of a name is enabled separately in an instance, and recorded by its own name."""
    instance = create_instance(ue)
    data = ue.open_data()
    first = data.register(ue.name() + " u16 a", flags=2)
    second = data.register(ue.name() + " u8 b", flags=2)
    # As text, e1.10 comes before e1.f.
    name = min(tracepoints(ue), key=unique_id)
    instance.enable(name, system="user_events_multi")
    assert (first.word.value, second.word.value) == (1, 0)
    assert data.write_event(first.index, b"\1\0").value == 6
    assert data.write_event(second.index, b"\1").errno == "EBADF"
    assert instance.records() == [f"{name}: a=0x1 (1)"]


@case(spec="user_event_reg, user_event_free", needs="lasting_events", tier="quick")
@doc("Deleting: delete succeeds only without references, in user and kernel space")
@variants(
    ("ioctl.two", "ioctl", 2),
    ("ioctl", "ioctl", 1),
    ("dynamic_events", "dynamic_events", 1),
    ("truncation", "truncation", 1),
)
def test_keeps_an_event(ue: UserEvents, way: str, listeners: int) -> None:
    """An event enabled only in instances cannot be deleted: EBUSY, until the last disables it."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    data = ue.open_data()
    instances = [create_instance(ue, stem) for stem in ("i", "j")[:listeners]]

    def delete() -> str:
        if way == "ioctl":
            return data.delete(ue.name()).errno
        if way == "truncation":
            return ue.tracefs.command("\n", os.O_WRONLY | os.O_TRUNC).errno
        return ue.tracefs.command(f"-:{ue.name()}\n").errno

    for instance in instances:
        instance.enable(ue.name())
    for instance in instances:
        assert delete() == "EBUSY"
        assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
        instance.disable(ue.name())
    assert delete() == ""
    assert ue.tracefs.status() == ""


@case(spec="user_event_put; trace.c:__remove_instance", profiles="6.4..", needs="auto_delete")
def test_removal_takes_the_last_reference(ue: UserEvents) -> None:
    """An event held only by an instance is deleted when the instance is removed."""
    instance = create_instance(ue)
    ue.event()
    instance.enable(ue.name())
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()} # Used by ftrace\n"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"
    assert instance.remove().value == 0
    assert ue.tracefs.status(eventually=True) == ""
    assert ue.tracefs.dynamic_events() == ""


@case(level="behaviour", profiles="6.4..", needs="auto_delete", tier="quick")
@doc("Deleting: events auto-delete when no references are left;")
@doc("silent about the error of other fields")
@spec("user_event_reg, user_event_put")
@variants("top", "instance")
def test_last_of_two(ue: UserEvents, last: str) -> None:
    """An event without a program stays, with its fields, until the last instance disables it."""
    instance, event = create_instance(ue), ue.event("u16 a")
    instance.enable(ue.name())
    event.enable()
    ue.process.exit()
    listeners: dict[str, Tracefs] = {"top": ue.tracefs, "instance": instance}
    stays = listeners.pop(last)
    (goes,) = listeners.values()
    goes.disable(ue.name())
    data = ue.new_process().open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.status() == f"{ue.name()} # Used by ftrace\n"
    # The next program finds the enabled event, and no other of its name.
    assert data.register(ue.name() + " u32 b").errno == "EADDRINUSE"
    word = data.register(ue.name() + " u16 a").word
    assert word.value == 1
    assert data.write_event(0, b"\1\0").value == 6
    assert stays.records() == [ue.line("a=0x1 (1)", dump="01 00")]
    data.unregister(word)
    data.close()
    stays.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""
