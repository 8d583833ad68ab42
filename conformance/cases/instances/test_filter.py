"""Files of tracefs instances: filters and triggers, and no files to create events with."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance, enabled_in
from conformance.cases.support.trace_text import u8_lines

SPEC = "fs/namei.c"
DOC = "ftrace.rst@v6.12: Instances: events of an instance are its own"
case = surface("instance", SPEC, DOC, level="detail", tier="full", isolation="global")


@case(spec="trace_events_filter.c:apply_event_filter; trace_events.c:trace_create_new_event")
def test_filter_refused(ue: UserEvents) -> None:
    """An invalid filter is reported in the files of its instance only."""
    instance, event = create_instance(ue), ue.event("u8 a")
    ue.tracefs.clear_errors()
    top, directory = event.directory, instance.directory(ue.name())
    assert directory.set_filter("b == 1").errno == "EINVAL"
    assert directory.filter == "b == 1\n  ^\nparse_error: Field not found\n\n"
    assert instance.errors() == (
        "event filter parse error: error: Field not found\n  Command: b == 1\n             ^\n"
    )
    assert top.filter == "none\n"
    assert ue.tracefs.errors() == ""


@case(spec="trace_events_filter.c:apply_event_filter; trace_events.c:trace_create_new_event")
@variants("instance", "top")
def test_filter(ue: UserEvents, where: str) -> None:
    """A filter rejects records of its own instance only, whether that is the top or another."""
    instance = create_instance(ue)
    data = enabled_in(ue, "u8 a", ue.tracefs, instance)
    listeners = {"top": ue.tracefs, "instance": instance}
    filtered = listeners.pop(where)
    (other,) = listeners.values()
    assert filtered.directory(ue.name()).set_filter("a == 2").errno == ""
    for payload in (b"\1", b"\2", b"\3"):
        assert data.write_event(0, payload).value == 5
    assert filtered.records() == u8_lines(ue, 2)
    assert other.records() == u8_lines(ue, 1, 2, 3)
    assert other.directory(ue.name()).filter == "none\n"


@case(spec="trace_events_filter.c:apply_subsystem_event_filter")
def test_filter_of_a_system(ue: UserEvents) -> None:
    """The filter of the system in an instance is set on the events of that instance."""
    instance, event = create_instance(ue), ue.event("u8 a")
    system = instance.path("events/user_events/filter")
    assert instance.write(system, "a == 2\n").value == 7
    assert (instance.directory(ue.name()).filter, event.directory.filter) == ("a == 2\n", "none\n")
    assert instance.write(system, "0\n").errno == ""
    assert instance.directory(ue.name()).filter == "none\n"


@case(needs="dynamic_fields_validated")
@spec("trace.c:trace_event_buffer_lock_reserve: trace_buffered_event")
@doc("@v6.12: Writing Data: silent about dynamic fields and filters")
def test_filter_makes_it_look(ue: UserEvents) -> None:
    """A filter in an instance that records nothing still makes malformed payloads fail: EFAULT."""
    instance = create_instance(ue)
    data = enabled_in(ue, "u8 a; __rel_loc char[] s", instance)
    instance.write(instance.path("tracing_on"), "0\n")
    assert data.write_event(0, b"\1\0\0\2\0xx").value == 11
    instance.directory(ue.name()).set_filter("a == 2")
    assert data.write_event(0, b"\1\0\0\2\0xx").errno == "EFAULT"
    assert data.write_event(0, b"\1\0\0\2\0x\0").value == 11


@case(spec="trace_events.c:__trace_add_event_dirs, __add_event_to_tracers")
def test_directory_of_an_event(ue: UserEvents) -> None:
    """Events created before and after the instance have directories in it, with one format."""
    data = ue.event("u32 a; char[4] b", "old").data
    instance = create_instance(ue)
    data.register(ue.name("new") + " u32 a; char[4] b")
    for stem in ("old", "new"):
        shown = instance.format(ue.name(stem))
        assert "\tfield:u32 a;\toffset:8;\tsize:4;\tsigned:0;\n" in shown
        assert shown == ue.tracefs.format(ue.name(stem))
        assert instance.mode(instance.event_path(ue.name(stem), "enable")) == 0o640
        assert instance.mode(instance.event_path(ue.name(stem), "format")) == 0o440


@case(spec="trace_events.c:remove_event_from_tracers", needs="lasting_events")
@doc("@v6.12: Unregistering: deleting removes the event from the system; silent about instances")
def test_directory_goes(ue: UserEvents) -> None:
    """Deleting an event removes its directory from every instance."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    instance = create_instance(ue)
    assert instance.enabled(ue.name()).text == "0\n"
    assert ue.open_data().delete(ue.name()).value == 0
    assert instance.enabled(ue.name()).errno == "ENOENT"
    assert instance.enable(ue.name()).errno == "ENOENT"


@case(spec="vfs_mkdir, vfs_rmdir", doc="@v6.12: events are registered through a file")
@variants("top", "instance")
def test_no_directory_makes_an_event(ue: UserEvents, where: str) -> None:
    """mkdir below events/ creates no event, and rmdir deletes none: EPERM."""
    instance = create_instance(ue)
    ue.event()
    files = instance if where == "instance" else ue.tracefs
    assert files.make_directory(f"events/user_events/{ue.name('new')}").errno == "EPERM"
    assert files.remove_directory(f"events/user_events/{ue.name()}").errno == "EPERM"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="trace_events_user.c:create_user_tracefs; trace_dynevent.c:init_dynamic_event")
@doc("@v6.12: Overview: the files are in /sys/kernel/tracing; silent about instances")
@variants(
    ("data", "user_events_data"),
    ("status", "user_events_status"),
    ("dynamic_events", "dynamic_events"),
)
def test_files_of_the_system(ue: UserEvents, file: str) -> None:
    """An instance has no user_events_data, user_events_status or dynamic_events."""
    instance = create_instance(ue)
    assert ue.process.open(instance.path(file))[0].errno == "ENOENT"


@case(spec="trace_dynevent.c:init_dynamic_event", needs="lasting_events")
@doc("trace_dynevent.c@v6.12: dynamic events are those of the system")
def test_dynamic_events_not_its_own(ue: UserEvents) -> None:
    """An event created through dynamic_events appears in every instance at once."""
    instance = create_instance(ue)
    assert ue.tracefs.command(f"u:{ue.name()} u16 a\n").errno == ""
    instance.enable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    instance.disable(ue.name())
    ue.tracefs.command(f"-:{ue.name()} u16 a\n")
    assert instance.enabled(ue.name()).errno == "ENOENT"


@case(spec="trace_events_trigger.c:event_trigger_regex_write; trace_events.c:find_event_file")
@doc("Instances: events of an instance are its own, with what is set on them")
def test_hooks_of_nothing(ue: UserEvents) -> None:
    """An instance rejects filters and triggers of an event, or on a field, that does not exist."""
    instance = create_instance(ue)
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


@case(spec="may_lookup; fs/tracefs/inode.c: the root directory has mode 0700")
@doc("Instances: events of an instance are its own, with what is set on them")
def test_hooks_of_an_ordinary_user(ue: UserEvents) -> None:
    """Without permission nothing can be set in an instance, valid or not: EACCES."""
    instance = create_instance(ue)
    ue.event("u8 a")
    ue.process.setuid()
    directory = instance.of(ue.process.actor).directory(ue.name())
    assert directory.set_filter("a == 1").errno == "EACCES"
    assert directory.set_filter("nonsense").errno == "EACCES"
    assert directory.trigger("traceon").errno == "EACCES"
    assert instance.directory(ue.name()).filter == "none\n"


@case(spec="trace_events.c:__trace_remove_event_dirs, __add_event_to_tracers")
def test_filter_goes_with_it(ue: UserEvents) -> None:
    """An instance created again under its old name has none of its filters and triggers."""
    instance, event = create_instance(ue), ue.event("u8 a")
    directory = instance.directory(ue.name())
    directory.set_filter("a == 2")
    directory.trigger("traceon if a == 1")
    assert instance.remove().value == 0
    create_instance(ue)
    assert directory.filter == "none\n"
    assert directory.triggers == ""
    assert directory.enabled == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
