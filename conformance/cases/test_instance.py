"""tracefs instances as listeners: each has an `enable` of its own for every user event."""

from __future__ import annotations

import os

from conformance.cases.declare import case, variants
from conformance.sut.tracefs import Instance, Tracefs
from conformance.sut.user_events import UserEvents

PROFILES = "5.18.."
DOC = "Documentation/trace/ftrace.rst@v6.12: Instances: events of an instance are its own"
STATUS_DOC = "Documentation/trace/user_events.rst@v6.12: Status: who uses an event is shown"
REG = "trace_events_user.c:user_event_reg"
REMOVE = "trace.c:__remove_instance; trace_events.c:event_trace_del_tracer"
FIELDS = " u16 a"


def made(ue: UserEvents, stem: str = "i") -> Instance:
    """An instance that is there."""
    instance = ue.instance(stem)
    assert instance.make().errno == ""
    return instance


def one(ue: UserEvents, name: str = "e") -> str:
    """The trace line of the payload 01 00."""
    return ue.line("a=0x1 (1)", name=name, dump="01 00")


@case(
    "instance.has_its_own_switch",
    spec=f"{REG}; trace_events.c:event_enable_write",
    doc=DOC,
    profiles=PROFILES,
    isolation="global",
)
def test_has_its_own_switch(ue: UserEvents) -> None:
    """Enabling an event in an instance tells its program, and enables it nowhere else."""
    instance = made(ue)
    event = ue.open_data().register(ue.name() + FIELDS)
    assert instance.enabled(ue.name()).text == "0\n"
    assert instance.enable(ue.name()).value == 2
    assert instance.enabled(ue.name()).text == "1\n"
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    instance.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
    assert instance.remove().errno == ""


@case(
    "instance.two_listeners",
    spec="trace_events_user.c:update_enable_bit_for",
    doc=STATUS_DOC,
    profiles=PROFILES,
    isolation="global",
)
@variants(
    "ended_first",
    {"instance": "instance", "top": "top"},
)
def test_two_listeners(ue: UserEvents, ended_first: str) -> None:
    """An event enabled at the top and in an instance is told and shown once, until both end."""
    instance = made(ue)
    data = ue.open_data()
    event = data.register(ue.name() + FIELDS)
    instance.enable(ue.name())
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    listeners: dict[str, Tracefs] = {"top": ue.tracefs, "instance": instance}
    first = listeners.pop(ended_first)
    (last,) = listeners.values()
    first.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    assert data.write_event(0, b"\1\0").value == 6
    last.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, b"\1\0").errno == errno
    assert last.records() == [one(ue)]
    assert first.records() == []
    instance.remove()


@case(
    "instance.records",
    spec="trace_events_user.c:user_event_ftrace",
    doc=DOC,
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_records(ue: UserEvents) -> None:
    """One write is recorded once in each instance that listens, and in no other."""
    first, second = made(ue, "i"), made(ue, "j")
    data = ue.open_data()
    data.register(ue.name("a") + FIELDS)
    data.register(ue.name("b") + FIELDS)
    first.enable(ue.name("a"))
    second.enable(ue.name("a"))
    second.enable(ue.name("b"))
    assert data.write_event(0, b"\1\0").value == 6
    assert data.write_event(1, b"\1\0").value == 6
    assert first.records() == [one(ue, "a")]
    assert second.records() == [one(ue, "a"), one(ue, "b")]
    assert ue.tracefs.records() == []
    second.clear_trace()
    assert second.records() == []
    assert first.records() == [one(ue, "a")]
    first.remove()
    second.remove()


@case(
    "instance.directory_of_an_event",
    spec="trace_events.c:__trace_add_event_dirs, __add_event_to_tracers",
    doc=DOC,
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_directory_of_an_event(ue: UserEvents) -> None:
    """Events from before and after its making have directories in an instance, with one format."""
    data = ue.open_data()
    data.register(ue.name("old") + " u32 a; char[4] b")
    instance = made(ue)
    data.register(ue.name("new") + " u32 a; char[4] b")
    for stem in ("old", "new"):
        shown = instance.format(ue.name(stem))
        assert "\tfield:u32 a;\toffset:8;\tsize:4;\tsigned:0;\n" in shown
        assert shown == ue.tracefs.format(ue.name(stem))
        assert instance.mode(instance.event_path(ue.name(stem), "enable")) == 0o640
        assert instance.mode(instance.event_path(ue.name(stem), "format")) == 0o440
    instance.remove()


@case(
    "instance.directory_goes",
    spec="trace_events.c:remove_event_from_tracers",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: an event that is gone is gone "
    "for every tool",
    needs=("lasting_events",),
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_directory_goes(ue: UserEvents) -> None:
    """The deletion of an event takes its directory out of every instance."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    instance = made(ue)
    assert instance.enabled(ue.name()).text == "0\n"
    assert ue.open_data().delete(ue.name()).value == 0
    assert instance.enabled(ue.name()).errno == "ENOENT"
    assert instance.enable(ue.name()).errno == "ENOENT"
    instance.remove()


@case(
    "instance.keeps_an_event",
    spec=f"{REG}; trace_events_user.c:user_event_free",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: an event in use is not deleted",
    needs=("lasting_events",),
    profiles=PROFILES,
    isolation="global",
)
@variants(
    "way, listeners",
    {
        "ioctl": ("ioctl", 1),
        "ioctl.two": ("ioctl", 2),
        "dynamic_events": ("dynamic_events", 1),
        "truncation": ("truncation", 1),
    },
)
def test_keeps_an_event(ue: UserEvents, way: str, listeners: int) -> None:
    """An event that only an instance listens to cannot be deleted: EBUSY, until the last ends."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    data = ue.open_data()
    instances = [made(ue, stem) for stem in ("i", "j")[:listeners]]

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
    for instance in instances:
        instance.remove()


@case(
    "instance.removal_ends_listening",
    spec=REMOVE,
    doc=f"{DOC}; removing the directory removes the instance and all it has",
    needs=("lasting_events",),
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_removal_ends_listening(ue: UserEvents) -> None:
    """Removing an instance tells the program that it listens no more, and lets the event go."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    data = ue.open_data()
    event = data.register(ue.name())
    instance = made(ue)
    instance.enable(ue.name())
    assert instance.remove().value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    if ue.profile.has("remote_enable"):
        assert event.word.value == 0
        data.unregister(event.word)
    data.close()
    assert ue.open_data().delete(ue.name(), eventually=True).value == 0


@case(
    "instance.removal_takes_the_last_reference",
    spec=f"{REMOVE}; trace_events_user.c:user_event_put",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: events go with their last reference",
    needs=("auto_delete",),
    isolation="global",
)
def test_removal_takes_the_last_reference(ue: UserEvents) -> None:
    """An event that nothing but an instance holds goes away when the instance is removed."""
    instance = made(ue)
    ue.open_data().register(ue.name())
    instance.enable(ue.name())
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()} # Used by ftrace\n"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"
    assert instance.remove().value == 0
    assert ue.tracefs.status(eventually=True) == ""
    assert ue.tracefs.dynamic_events() == ""


@case(
    "instance.last_of_two",
    spec=f"{REG}; trace_events_user.c:user_event_put",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: events go with their last reference",
    needs=("auto_delete",),
    isolation="global",
    tier="full",
)
@variants("last", {"instance": "instance", "top": "top"})
def test_last_of_two(ue: UserEvents, last: str) -> None:
    """An event without a program stays, with its fields, until the last instance lets it go."""
    instance = made(ue)
    ue.open_data().register(ue.name() + FIELDS)
    instance.enable(ue.name())
    ue.tracefs.enable(ue.name())
    ue.process.exit()
    listeners: dict[str, Tracefs] = {"top": ue.tracefs, "instance": instance}
    stays = listeners.pop(last)
    (goes,) = listeners.values()
    goes.disable(ue.name())
    data = ue.new_process().open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.status() == f"{ue.name()} # Used by ftrace\n"
    # The next program finds the event, which is listened to, and no other of its name.
    assert data.register(ue.name() + " u32 b").errno == "EADDRINUSE"
    word = data.register(ue.name() + FIELDS).word
    assert word.value == 1
    assert data.write_event(0, b"\1\0").value == 6
    assert stays.records() == [one(ue)]
    data.unregister(word)
    data.close()
    stays.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""
    instance.remove()


@case(
    "instance.removal_leaves_the_others",
    spec=REMOVE,
    doc=DOC,
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_removal_leaves_the_others(ue: UserEvents) -> None:
    """Removing one of two instances that listen changes nothing for the other."""
    gone, stays = made(ue, "i"), made(ue, "j")
    data = ue.open_data()
    event = data.register(ue.name() + FIELDS)
    gone.enable(ue.name())
    stays.enable(ue.name())
    data.write_event(0, b"\1\0")
    gone.remove()
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    if ue.profile.has("remote_enable"):
        assert event.word.value == 1
    assert data.write_event(0, b"\2\0").value == 6
    assert stays.records() == [one(ue), ue.line("a=0x2 (2)", dump="02 00")]
    stays.remove()


@case(
    "instance.busy",
    spec="trace.c:tracing_open_file_tr, __remove_instance",
    doc=f"{DOC}; an instance in use cannot be removed",
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
@variants(
    "file",
    {
        "enable": "events/user_events/{}/enable",
        "group": "events/user_events/enable",
        "trace_pipe": "trace_pipe",
        "tracing_on": "tracing_on",
        "set_event": "set_event",
    },
)
def test_busy(ue: UserEvents, file: str) -> None:
    """An instance of which a file is open cannot be removed, and goes on listening: EBUSY."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + FIELDS)
    instance.enable(ue.name())
    opened, slot = ue.process.open(instance.path(file.format(ue.name())), os.O_NONBLOCK)
    assert opened.value == 0
    assert instance.remove().errno == "EBUSY"
    assert data.write_event(0, b"\1\0").value == 6
    assert instance.records() == [one(ue)]
    ue.process.close(slot)
    assert instance.remove().value == 0
    assert instance.enabled(ue.name()).errno == "ENOENT"


@case(
    "instance.refused",
    spec="fs/namei.c:vfs_mkdir, vfs_rmdir; fs/tracefs/inode.c:tracefs_syscall_mkdir",
    doc=f"{DOC}; instances are made and removed as directories",
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_refused(ue: UserEvents) -> None:
    """An instance is made once and removed once: EEXIST, ENOENT."""
    instance = ue.instance()
    assert instance.remove().errno == "ENOENT"
    assert instance.make().value == 0
    assert instance.make().errno == "EEXIST"
    assert instance.remove().value == 0
    assert instance.remove().errno == "ENOENT"


@case(
    "instance.no_directory_makes_an_event",
    spec="fs/namei.c:vfs_mkdir, vfs_rmdir",
    doc="Documentation/trace/user_events.rst@v6.12: events are registered through a file",
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
@variants("where", {"top": "top", "instance": "instance"})
def test_no_directory_makes_an_event(ue: UserEvents, where: str) -> None:
    """A directory below events/ neither makes an event nor, removed, deletes one: EPERM."""
    instance = made(ue)
    ue.open_data().register(ue.name())
    files = instance if where == "instance" else ue.tracefs
    assert files.make_directory(f"events/user_events/{ue.name('new')}").errno == "EPERM"
    assert files.remove_directory(f"events/user_events/{ue.name()}").errno == "EPERM"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    instance.remove()


@case(
    "instance.ordinary_user",
    spec="fs/namei.c:may_create; fs/tracefs/inode.c: the root directory has mode 0700",
    doc=DOC,
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_ordinary_user(ue: UserEvents) -> None:
    """A user without rights makes no instance, removes none and enables nothing in one: EACCES."""
    instance = made(ue)
    ue.open_data().register(ue.name())
    ue.process.setuid()
    mine = ue.instance("j").of(ue.process.actor)
    assert mine.make().errno == "EACCES"
    theirs = instance.of(ue.process.actor)
    assert theirs.remove().errno == "EACCES"
    assert theirs.enable(ue.name()).errno == "EACCES"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    instance.remove()


@case(
    "instance.files_of_the_system",
    spec="trace_events_user.c:create_user_tracefs; trace_dynevent.c:init_dynamic_event",
    doc="Documentation/trace/user_events.rst@v6.12: the files of user events are at the top",
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
@variants(
    "file",
    {
        "data": "user_events_data",
        "status": "user_events_status",
        "dynamic_events": "dynamic_events",
    },
)
def test_files_of_the_system(ue: UserEvents, file: str) -> None:
    """An instance has no files to register events with: these are at the top only."""
    instance = made(ue)
    assert ue.process.open(instance.path(file))[0].errno == "ENOENT"
    instance.remove()


@case(
    "instance.made_again", spec=REMOVE, doc=DOC, profiles=PROFILES, isolation="global", tier="full"
)
def test_made_again(ue: UserEvents) -> None:
    """An instance made again under its name listens to nothing and has no records."""
    instance = made(ue)
    data = ue.open_data()
    data.register(ue.name() + FIELDS)
    instance.enable(ue.name())
    data.write_event(0, b"\1\0")
    instance.remove()
    made(ue)
    assert instance.enabled(ue.name()).text == "0\n"
    assert instance.records() == []
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    instance.remove()


@case(
    "instance.multi_format",
    spec="trace_events_user.c:user_event_set_tp_name; trace_events.c:__add_event_to_tracers",
    doc="Documentation/trace/user_events.rst@v6.12: formats of one name are apart in "
    "user_events_multi",
    needs=("multi_format",),
    isolation="global",
    tier="full",
)
def test_multi_format(ue: UserEvents) -> None:
    """Each format of a name is enabled by itself in an instance, and recorded by its own name."""
    instance = made(ue)
    data = ue.open_data()
    first = data.register(ue.name() + FIELDS, flags=2)
    second = data.register(ue.name() + " u8 b", flags=2)
    names = ue.tracefs.status().splitlines()
    names.sort()
    instance.enable(names[0], system="user_events_multi")
    assert (first.word.value, second.word.value) == (1, 0)
    assert data.write_event(first.index, b"\1\0").value == 6
    assert data.write_event(second.index, b"\1").errno == "EBADF"
    assert instance.records() == [f"{names[0]}: a=0x1 (1)"]
    instance.disable(names[0], system="user_events_multi")
    instance.remove()


@case(
    "instance.dynamic_events_not_its_own",
    spec="trace_dynevent.c:init_dynamic_event",
    doc="trace_dynevent.c@v6.12: dynamic events are those of the system",
    needs=("lasting_events",),
    profiles=PROFILES,
    isolation="global",
    tier="full",
)
def test_dynamic_events_not_its_own(ue: UserEvents) -> None:
    """An event made through dynamic_events is in every instance at once."""
    instance = made(ue)
    assert ue.tracefs.command(f"u:{ue.name()} u16 a\n").errno == ""
    instance.enable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    instance.disable(ue.name())
    ue.tracefs.command(f"-:{ue.name()} u16 a\n")
    assert instance.enabled(ue.name()).errno == "ENOENT"
    instance.remove()
