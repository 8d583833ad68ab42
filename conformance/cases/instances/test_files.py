"""Files of tracefs instances: directories for all events, and no files to create events with."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.instances import made
from conformance.client.user_events import UserEvents

case = surface(
    "instance",
    spec="trace_events.c",
    doc="Documentation/trace/user_events.rst@v6.12",
    tier="full",
    isolation="global",
)


@case(
    spec="__trace_add_event_dirs, __add_event_to_tracers",
    doc="Documentation/trace/ftrace.rst@v6.12: Instances: events of an instance are its own",
)
def test_directory_of_an_event(ue: UserEvents) -> None:
    """Events created before and after the instance have directories in it, with one format."""
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


@case(
    spec="remove_event_from_tracers",
    doc="Deleting: a deleted event is gone for every tool",
    needs="lasting_events",
)
def test_directory_goes(ue: UserEvents) -> None:
    """Deleting an event removes its directory from every instance."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    instance = made(ue)
    assert instance.enabled(ue.name()).text == "0\n"
    assert ue.open_data().delete(ue.name()).value == 0
    assert instance.enabled(ue.name()).errno == "ENOENT"
    assert instance.enable(ue.name()).errno == "ENOENT"


@case(spec="fs/namei.c:vfs_mkdir, vfs_rmdir", doc="events are registered through a file")
@variants("top", "instance")
def test_no_directory_makes_an_event(ue: UserEvents, where: str) -> None:
    """mkdir below events/ creates no event, and rmdir deletes none: EPERM."""
    instance = made(ue)
    ue.event()
    files = instance if where == "instance" else ue.tracefs
    assert files.make_directory(f"events/user_events/{ue.name('new')}").errno == "EPERM"
    assert files.remove_directory(f"events/user_events/{ue.name()}").errno == "EPERM"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(
    spec="trace_events_user.c:create_user_tracefs; trace_dynevent.c:init_dynamic_event",
    doc="the files of user events are at the top",
)
@variants(
    ("data", "user_events_data"),
    ("status", "user_events_status"),
    ("dynamic_events", "dynamic_events"),
)
def test_files_of_the_system(ue: UserEvents, file: str) -> None:
    """An instance has no user_events_data, user_events_status or dynamic_events."""
    instance = made(ue)
    assert ue.process.open(instance.path(file))[0].errno == "ENOENT"


@case(
    spec="trace_dynevent.c:init_dynamic_event",
    doc="trace_dynevent.c@v6.12: dynamic events are those of the system",
    needs="lasting_events",
)
def test_dynamic_events_not_its_own(ue: UserEvents) -> None:
    """An event created through dynamic_events appears in every instance at once."""
    instance = made(ue)
    assert ue.tracefs.command(f"u:{ue.name()} u16 a\n").errno == ""
    instance.enable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    instance.disable(ue.name())
    ue.tracefs.command(f"-:{ue.name()} u16 a\n")
    assert instance.enabled(ue.name()).errno == "ENOENT"
