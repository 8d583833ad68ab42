"""Creating and removing tracefs instances: permissions, EBUSY, and the effect on events."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance, enabled_in

SPEC = "trace.c:__remove_instance; trace_events.c:event_trace_del_tracer"
DOC = "ftrace.rst@v6.12: Instances: events of an instance are its own"
case = surface("instance", SPEC, DOC, level="detail", tier="full", isolation="global")

OF_EVENT = "events/user_events/{}/enable"


@case(level="behaviour", needs="lasting_events")
@spec("trace_events_user.c:user_event_reg; trace.c:__remove_instance")
@doc("@v6.12: Status: the bit is updated as tools detach; silent about instances")
def test_removal_ends_listening(ue: UserEvents) -> None:
    """Removing an instance clears the enable word and drops the reference to the event."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    event = ue.event()
    instance = create_instance(ue)
    instance.enable(ue.name())
    assert instance.remove().value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
        event.unregister()
    event.data.close()
    assert ue.open_data().delete(ue.name(), eventually=True).value == 0


@case(level="behaviour")
@doc("@v6.12: Status: the bit is set while something is attached; silent about instances")
@spec("trace_events_user.c:update_enable_bit_for; trace.c:__remove_instance")
def test_removal_leaves_the_others(ue: UserEvents) -> None:
    """Removing one of two instances that have the event enabled does not affect the other."""
    gone, stays = create_instance(ue, "i"), create_instance(ue, "j")
    event = ue.event("u16 a")
    gone.enable(ue.name())
    stays.enable(ue.name())
    event.write(b"\1\0")
    gone.remove()
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert event.write(b"\2\0").value == 6
    assert stays.records() == [
        ue.line("a=0x1 (1)", dump="01 00"),
        ue.line("a=0x2 (2)", dump="02 00"),
    ]


@case(spec="tracing_open_file_tr, __remove_instance")
@doc("Instances: events of an instance are its own; an instance in use cannot be removed")
@variants(
    ("enable", OF_EVENT),
    ("group", "events/user_events/enable"),
    ("trace_pipe", "trace_pipe"),
    ("tracing_on", "tracing_on"),
    ("set_event", "set_event"),
)
def test_busy(ue: UserEvents, file: str) -> None:
    """An instance with an open file cannot be removed and stays enabled: EBUSY."""
    instance = create_instance(ue)
    data = enabled_in(ue, "u16 a", instance)
    opened, slot = ue.process.open(instance.path(file.format(ue.name())), os.O_NONBLOCK)
    assert opened.value == 0
    if file == OF_EVENT and not ue.profile.has("enable_file_holds_instance"):
        assert instance.remove().errno == ""
        return
    assert instance.remove().errno == "EBUSY"
    assert data.write_event(0, b"\1\0").value == 6
    assert instance.records() == [ue.line("a=0x1 (1)", dump="01 00")]
    ue.process.close(slot)
    assert instance.remove().value == 0
    assert instance.enabled(ue.name()).errno == "ENOENT"


@case(spec="trace_events.c:trace_format_open; trace_events_trigger.c:event_trigger_regex_open")
@doc("Instances: silent about open files")
@variants("format", "id", "trigger")
def test_not_busy(ue: UserEvents, file: str) -> None:
    """An open `format`, `id` or `trigger` of an event in an instance does not hold it."""
    instance = create_instance(ue)
    ue.event("u16 a")
    opened, slot = ue.process.open(instance.event_path(ue.name(), file))
    assert opened.value == 0
    assert instance.remove().errno == ""
    assert ue.process.close(slot).errno == ""


@case(spec="fs/namei.c:vfs_mkdir, vfs_rmdir; fs/tracefs/inode.c:tracefs_syscall_mkdir")
@doc("Instances: events of an instance are its own; instances are made and removed as directories")
def test_refused(ue: UserEvents) -> None:
    """Creating an instance twice is EEXIST, removing it twice is ENOENT."""
    instance = ue.instance()
    assert instance.remove().errno == "ENOENT"
    assert instance.make().value == 0
    assert instance.make().errno == "EEXIST"
    assert instance.remove().value == 0
    assert instance.remove().errno == "ENOENT"


@case(spec="fs/namei.c:may_create; fs/tracefs/inode.c: the root directory has mode 0700")
def test_ordinary_user(ue: UserEvents) -> None:
    """Without permission no instance is created or removed and nothing in one enabled: EACCES."""
    instance = create_instance(ue)
    ue.event()
    ue.process.setuid()
    assert ue.instance("j").of(ue.process.actor).make().errno == "EACCES"
    theirs = instance.of(ue.process.actor)
    assert theirs.remove().errno == "EACCES"
    assert theirs.enable(ue.name()).errno == "EACCES"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case
def test_made_again(ue: UserEvents) -> None:
    """An instance created again under its old name has nothing enabled and no records."""
    instance = create_instance(ue)
    enabled_in(ue, "u16 a", instance).write_event(0, b"\1\0")
    instance.remove()
    create_instance(ue)
    assert instance.enabled(ue.name()).text == "0\n"
    assert instance.records() == []
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
