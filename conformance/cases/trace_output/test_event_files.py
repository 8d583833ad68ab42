"""Descriptors of an event's files: they hold no reference, and fail after deletion."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.client.files import File

SPEC = "trace_events.c:event_enable_read, event_enable_write"
case = surface("event_files", spec=SPEC, level="detail", tier="full")


@case(spec="trace_output.c:register_trace_event")
@doc("events.rst@v6.12: each event has a directory of files")
def test_id(ue: UserEvents) -> None:
    """Each event has its own id, in decimal, which does not change while it lives."""
    data = ue.open_data()
    paths = []
    for stem in ("a", "b", "c"):
        data.register(ue.name(stem))
        paths.append(ue.tracefs.event_path(ue.name(stem), "id"))
    numbers = [ue.tracefs.read(path).text for path in paths]
    assert len(set(numbers)) == 3
    assert [number.rstrip("\n").isdigit() for number in numbers] == [True, True, True]
    ue.tracefs.enable(ue.name("a"))
    again = [ue.tracefs.read(path).text for path in paths]
    assert [old == new for old, new in zip(numbers, again, strict=True)] == [True, True, True]


@case(doc="events.rst@v6.12: each event has a directory of files")
def test_enable(ue: UserEvents) -> None:
    """One descriptor of `enable` can be written and read many times, at any position."""
    event = ue.event()
    path = ue.tracefs.event_path(ue.name(), "enable")
    reader, writer = File(ue.process, path), File(ue.process, path, os.O_WRONLY)
    assert [reader.read(1).text, reader.read().text, reader.read().text] == ["0", "\n", ""]
    for text in ("1", "0", "1\n"):
        assert writer.write(text.encode()).value == len(text)
        assert ue.tracefs.enabled(ue.name()).text == f"{text[0]}\n"
        if ue.profile.has("remote_enable"):
            assert event.word.value == int(text)
    assert File(ue.process, path).write(b"0").errno == "EBADF"
    assert writer.write(b"0").value == 1
    assert writer.read().errno == "EBADF"


@case(needs="lasting_events", tier="quick")
@doc("Deleting: delete succeeds only without references; silent about open files")
@spec("trace.c:tracing_open_file_tr; trace_events.c:event_enable_read, event_enable_write;")
@spec("trace_events_user.c:user_event_free")
@variants("ioctl", "dynamic_events")
def test_descriptor_is_no_reference(ue: UserEvents, way: str) -> None:
    """An open `enable` does not hold an event: it is deleted, and the descriptor is ENODEV."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    file = File(ue.process, ue.tracefs.event_path(ue.name(), "enable"), os.O_RDWR)
    if way == "ioctl":
        assert ue.open_data().delete(ue.name()).value == 0
    else:
        assert ue.tracefs.command(f"-:{ue.name()}\n").errno == ""
    assert (file.read().errno, file.write(b"1").errno) == ("ENODEV", "ENODEV")
    assert file.write(b"2").errno == "EINVAL"
    assert ue.tracefs.status() == ""


@case(needs="lasting_events deleted_files_refused")
@spec("f_start, event_filter_read; trace_events_trigger.c:trigger_start")
@doc("Deleting: delete succeeds only without references; silent about open files")
@variants("format", "filter", "trigger")
def test_nothing_left_to_read(ue: UserEvents, file: str) -> None:
    """An open `format`, `filter` or `trigger` does not hold an event either, and is ENODEV."""
    ue.tracefs.command(f"u:{ue.name()} u32 a\n")
    opened = File(ue.process, ue.tracefs.event_path(ue.name(), file))
    assert ue.open_data().delete(ue.name()).value == 0
    assert opened.read().errno == "ENODEV"
    ue.tracefs.command(f"u:{ue.name()} u64 b\n")
    assert opened.read().errno == "ENODEV"


@case(doc="Deleting: silent about open files", needs="lasting_events")
def test_not_the_next_of_its_name(ue: UserEvents) -> None:
    """A descriptor of a deleted event does not enable a new event of that name."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    file = File(ue.process, ue.tracefs.event_path(ue.name(), "enable"), os.O_RDWR)
    assert ue.open_data().delete(ue.name()).value == 0
    ue.tracefs.command(f"u:{ue.name()}\n")
    assert file.write(b"1").errno == "ENODEV"
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(profiles="6.4..", needs="auto_delete")
@spec("event_enable_read, event_enable_write; trace_events_user.c:delayed_destroy_user_event")
@doc("Deleting: events auto-delete when no references are left; silent about open files")
def test_outlives_the_event(ue: UserEvents) -> None:
    """An open `enable` does not delay deletion after the last reference, either."""
    ue.event()
    file = File(ue.new_process(), ue.tracefs.event_path(ue.name(), "enable"), os.O_RDWR)
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == ""
    assert (file.read().errno, file.write(b"1").errno) == ("ENODEV", "ENODEV")
