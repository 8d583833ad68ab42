"""Lifetime of an ftrace filter: what shows it, and what it survives."""

from conformance.cases.case import UserEvents, doc, surface

case = surface("filter", spec="trace_events.c:remove_event_file_dir", level="detail", tier="full")


@case(spec="trace_events_filter.c:print_event_filter")
@doc("events.rst@v6.12: Event filtering: Clearing filters: 0 clears, and none is shown")
def test_shown(ue: UserEvents) -> None:
    """The file shows `none`, or the filter without trailing blanks, until 0 clears it."""
    event = ue.event("u8 a", enabled=True)
    assert event.directory.filter == "none\n"
    assert event.directory.set_filter("  a == 1 \t ").value == 12
    assert event.directory.filter == "  a == 1\n"
    event.write(b"\2")
    assert event.directory.set_filter(" 0 ").errno == ""
    assert event.directory.filter == "none\n"
    event.write(b"\3")
    assert ue.tracefs.records() == [ue.line("a=(3)", dump="03")]


@case(spec="trace_events_filter.c:apply_event_filter: no event is registered by it")
@doc("Status: the bit tells whether something is attached; silent about filters")
def test_alone(ue: UserEvents) -> None:
    """A filter on a disabled event sets no enable word and lets no write pass."""
    event = ue.event("u8 a")
    assert event.directory.set_filter("a == 1").errno == ""
    assert event.directory.enabled == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert event.write(b"\1").errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")


@case(spec="__ftrace_event_enable_disable")
@doc("events.rst@v6.12: Event filtering: a filter stays until another is set or it is cleared")
def test_stays(ue: UserEvents) -> None:
    """A filter survives disabling, enabling again, and the exit of the event's writers."""
    first = ue.new_process()
    first.open_data().register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    directory = ue.tracefs.directory(ue.name())
    assert directory.set_filter("a == 1").errno == ""
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    first.exit()
    event = ue.event("u8 a")
    event.write(b"\2")
    event.write(b"\1")
    assert directory.filter == "a == 1\n"
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case(doc="Deleting: silent about filters", needs="lasting_events", tier="quick")
def test_gone_with_the_event(ue: UserEvents) -> None:
    """An event that is deleted and created again has no filter."""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    directory = ue.tracefs.directory(ue.name())
    assert directory.set_filter("a == 1").errno == ""
    assert ue.tracefs.command(f"-:{ue.name()} u8 a\n").errno == ""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    assert directory.filter == "none\n"


@case(doc="Deleting: silent about filters", profiles="6.4..", needs="auto_delete")
def test_gone_with_the_process(ue: UserEvents) -> None:
    """A filter holds no reference: the event is deleted and comes back without it."""
    process = ue.new_process()
    process.open_data().register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    assert directory.set_filter("a == 1").errno == ""
    process.exit()
    path = ue.tracefs.event_path(ue.name(), "filter")
    assert ue.tracefs.read(path, eventually=True).errno == "ENOENT"
    ue.event("u8 a")
    assert directory.filter == "none\n"
