"""User events and kernel events of the same name do not affect each other."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.status_text import whole_status

SPEC = "delete_user_event"
DOC = "Registering: events show up under the subsystem user_events; silent about kernel events"
case = surface("isolation", SPEC, DOC, level="behaviour", tier="full", isolation="global")

KERNEL_EVENTS = {
    "sched_process_exit": ("sched", "sched_process_exit"),
    "task_newtask": ("task", "task_newtask"),
}


def look_at(ue: UserEvents, system: str, name: str) -> tuple[str, ...]:
    """Current format, id and enable of a kernel event."""
    return tuple(
        ue.tracefs.read(ue.tracefs.event_path(name, file, system)).text
        for file in ("format", "id", "enable")
    )


@case(spec="find_user_event")
@variants(
    KERNEL_EVENTS
    | {"sched_switch": ("sched", "sched_switch"), "signal_generate": ("signal", "signal_generate")}
)
def test_kernel_event_untouched(ue: UserEvents, system: str, name: str) -> None:
    """Registering the name of a kernel event does not change that event's format, id or state."""
    before = look_at(ue, system, name)
    assert ue.open_data().register(f"{name} u32 a").errno == ""
    after = look_at(ue, system, name)
    assert after == before
    assert after[2] == "0\n"


@case(spec="user_event_create", needs="lasting_events")
@variants(KERNEL_EVENTS)
def test_created_beside_kernel_event(ue: UserEvents, system: str, name: str) -> None:
    """A user event created and deleted by dynamic_events changes no kernel event of its name."""
    before = look_at(ue, system, name)
    assert ue.tracefs.command(f"u:{name} u64 a").errno == ""
    assert look_at(ue, system, name) == before
    assert ue.tracefs.command(f"-:{name} u64 a").errno == ""
    assert look_at(ue, system, name) == before


@case(spec="user_event_trace_register")
@variants("sched_switch", "task_newtask")
def test_own_directory(ue: UserEvents, name: str) -> None:
    """The user event has its own directory, format and line next to the kernel's."""
    ue.open_data().register(f"{name} u16 mine")
    text = ue.tracefs.format(name)
    assert text.startswith(f"name: {name}\nID: N\n")
    field = "\n\n\tfield:u16 mine;\toffset:8;\tsize:2;\tsigned:0;\n\n"
    print_fmt = ue.dated("print_fmt_generated", since='"mine=%u", REC->mine', before='""')
    assert text.endswith(f"{field}print fmt: {print_fmt}\n")
    assert ue.tracefs.dynamic_events(whole=True) == f"u:{name} u16 mine\n"
    assert whole_status(ue) == ue.status_line(1, name) + "\nActive: 1\nBusy: 0\n"


@case(spec="trace_events.c:event_create_dir", level="detail", tier="quick")
@variants(
    ("own", "user_events"), ("multi", "user_events_multi"), ("sched", "sched"), ("ftrace", "ftrace")
)
def test_named_like_a_system(ue: UserEvents, name: str) -> None:
    """An event may have the name of a system, even of its own."""
    assert ue.open_data().register(f"{name} u8 a").errno == ""
    assert ue.tracefs.enabled(name).text == "0\n"
    assert ue.tracefs.dynamic_events(whole=True) == f"u:{name} u8 a\n"


@case(spec="user_event_parse", level="contract", tier="quick", isolation="events")
@doc("Registering: events show up under the subsystem named user_events")
def test_not_in_another_system(ue: UserEvents) -> None:
    """A user event appears in user_events and in no other system."""
    ue.event("u32 a")
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    for system in ("sched", "task", "signal"):
        assert ue.tracefs.enabled(ue.name(), system=system).errno == "ENOENT"


@case(spec="user_event_parse", level="contract", tier="quick", isolation="events")
@doc("Registering: only with MULTI_FORMAT the system name is user_events_multi")
def test_not_in_the_multi_system(ue: UserEvents) -> None:
    """A single-format event does not appear in user_events_multi."""
    ue.event("u32 a")
    assert ue.tracefs.enabled(ue.name(), system="user_events_multi").errno == "ENOENT"


@case(spec="user_event_parse_cmd", tier="quick")
@doc("Command Format: flags follow the colon, none is supported yet; silent about the error")
def test_system_in_the_name(ue: UserEvents) -> None:
    """The form system:name selects no system: the text after the colon is parsed as flags."""
    event = ue.open_data().register(f"sched:{ue.name()} u32 a")
    assert event.errno == ue.dated("text_flags_refused", since="EINVAL", before="")
    shown = ue.dated("text_flags_refused", since="", before="u:sched u32 a\n")
    assert ue.tracefs.dynamic_events(whole=True) == shown


@case(spec="trace_events.c:event_create_dir", level="detail", tier="quick", bug="event-name-slash")
@variants({"system": "sched/", "upwards": "../sched/", "absolute": "/sched/"})
def test_path_in_the_name(ue: UserEvents, before: str) -> None:
    """A path as a name creates no directory in its own or the other system."""
    name = f"{before}{ue.name()}"
    refused = ue.event().data.register(f"{name} u32 a").errno
    assert refused == ue.bug("event-name-slash", fixed="EINVAL", present="")
    assert ue.tracefs.enabled(ue.name(), system="sched").errno == "ENOENT"
    second = "" if refused else f"u:{name} u32 a\n"
    assert ue.tracefs.dynamic_events(whole=True) == f"u:{ue.name()}\n{second}"


@case(spec="trace_events.c:event_create_dir", level="detail", bug="event-name-slash")
@variants({"system": "sched/sched_switch", "upwards": "../sched/sched_switch"})
def test_path_of_a_kernel_event(ue: UserEvents, name: str) -> None:
    """A user event named by the path of a kernel event does not affect that event."""
    before = look_at(ue, "sched", "sched_switch")
    errno = ue.bug("event-name-slash", fixed="EINVAL", present="")
    assert ue.open_data().register(f"{name} u32 a").errno == errno
    assert look_at(ue, "sched", "sched_switch") == before


@case(spec="user_event_reg", level="contract")
@doc("Registering, Status: tools attach by events/user_events/[name]/enable, which sets the bit")
@variants(KERNEL_EVENTS)
def test_enabling_the_user_event(ue: UserEvents, system: str, name: str) -> None:
    """Enabling the user event sets its program's word and does not enable the kernel event."""
    event = ue.open_data().register(f"{name} u32 a")
    ue.tracefs.enable(name)
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert whole_status(ue).startswith(ue.status_line(1, name, "ftrace"))
    assert ue.tracefs.enabled(name).text == "1\n"
    assert ue.tracefs.enabled(name, system=system).text == "0\n"


@case(spec="user_event_reg")
@doc("Status: the bit is set if something is attached to the event;")
@doc("silent about the error of a write")
@variants(KERNEL_EVENTS)
def test_enabling_the_kernel_event(ue: UserEvents, system: str, name: str) -> None:
    """Enabling the kernel event sets no word, changes no status and enables no write."""
    data = ue.open_data()
    event = data.register(f"{name} u32 a")
    ue.tracefs.enable(name, system=system)
    assert ue.tracefs.enabled(name, system=system).text == "1\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert ue.tracefs.enabled(name).text == "0\n"
    assert whole_status(ue) == ue.status_line(1, name) + "\nActive: 1\nBusy: 0\n"
    written = data.write_event(event.index, bytes(4))
    assert written.errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")


@case(spec="user_event_ftrace", level="contract", tier="quick")
@doc("Registering: write_index represents the event when writing data")
def test_record_of_the_user_event(ue: UserEvents) -> None:
    """A record written to a user event named like a kernel event is printed as its own."""
    data = ue.open_data()
    event = data.register("task_newtask u32 mine")
    ue.tracefs.enable("task_newtask")
    assert data.write_event(event.index, bytes.fromhex("41000000")).value == 8
    line = ue.dated("remote_enable", since="task_newtask: mine=0x41 (65)", before="41 00 00 00")
    assert ue.tracefs.records("task_newtask") == [line]


@case(level="contract", needs="lasting_events")
@doc("Deleting: DIAG_IOCSDEL takes the name of the event to delete")
@variants(KERNEL_EVENTS)
def test_delete_by_ioctl(ue: UserEvents, system: str, name: str) -> None:
    """Deleting the user event by ioctl deletes only that event, and only once."""
    before = look_at(ue, system, name)
    assert ue.tracefs.command(f"u:{name}").errno == ""
    data = ue.open_data()
    assert data.delete(name).value == 0
    assert data.delete(name).errno == "ENOENT"
    assert ue.tracefs.enabled(name).errno == "ENOENT"
    assert look_at(ue, system, name) == before


@case(spec="delayed_destroy_user_event", level="contract", profiles="6.4..", needs="auto_delete")
@doc("Deleting: events auto-delete when no references are left")
@variants(KERNEL_EVENTS)
def test_auto_delete(ue: UserEvents, system: str, name: str) -> None:
    """When the last process exits, the user event is deleted and the kernel event stays."""
    before = look_at(ue, system, name)
    ue.open_data().register(f"{name} u32 a")
    ue.process.exit()
    path = ue.tracefs.event_path(name, "enable")
    assert ue.tracefs.read(path, eventually=True).errno == "ENOENT"
    assert look_at(ue, system, name) == before


@case(doc="Deleting: silent about names of kernel events")
@variants(
    ("name", "sched_switch"),
    ("with-slash", "sched/sched_switch"),
    ("with-colon", "sched:sched_switch"),
    ("upwards", "../sched/sched_switch"),
)
def test_ioctl_cannot_delete(ue: UserEvents, name: str) -> None:
    """DIAG_IOCSDEL of a kernel event is ENOENT, however the name is spelled."""
    before = look_at(ue, "sched", "sched_switch")
    assert ue.open_data().delete(name).errno == "ENOENT"
    assert look_at(ue, "sched", "sched_switch") == before


@case(spec="trace_dynevent.c:dyn_event_release", level="detail")
@doc("trace_dynevent.c@v6.12: only dynamic events are looked through")
@variants(
    ("name", "-:sched_switch"),
    ("system", "-:sched/sched_switch"),
    ("own-system", "-:user_events/sched_switch"),
    ("exclamation", "!u:sched/sched_switch"),
)
def test_dynamic_events_cannot_delete(ue: UserEvents, command: str) -> None:
    """A kernel event cannot be deleted through dynamic_events: ENOENT."""
    before = look_at(ue, "sched", "sched_switch")
    assert ue.tracefs.command(command).errno == "ENOENT"
    assert look_at(ue, "sched", "sched_switch") == before


@case(spec="user_event_match", needs="lasting_events", tier="quick", isolation="events")
@doc("Deleting: silent about the system in a command")
@variants({"sched": "sched", "upper-case": "USER_EVENTS", "prefix": "user_event"})
def test_delete_by_another_system(ue: UserEvents, system: str) -> None:
    """A user event is not deleted by the name of another system: ENOENT."""
    assert ue.tracefs.command(f"u:{ue.name()}").errno == ""
    assert ue.tracefs.command(f"-:{system}/{ue.name()}").errno == "ENOENT"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"


@case(spec="find_user_event", level="contract", tier="quick", isolation="events")
@doc("Status: the bit tells whether something is attached to its event")
def test_user_events_apart(ue: UserEvents) -> None:
    """Enabling a user event does not affect another one whose name has the same prefix."""
    data = ue.open_data()
    short = data.register(f"{ue.name('ab')} u32 a")
    longer = data.register(f"{ue.name('abc')} u32 a")
    ue.tracefs.enable(ue.name("ab"))
    if ue.profile.has("remote_enable"):
        assert (short.word.value, longer.word.value) == (1, 0)
    assert ue.status_line(1, ue.name("ab"), "ftrace") in ue.tracefs.status()
    assert ue.tracefs.enabled(ue.name("abc")).text == "0\n"
