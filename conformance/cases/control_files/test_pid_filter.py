"""set_event_pid and set_event_notrace_pid: whose writes are recorded; enable words stay."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance
from conformance.client.process import Process
from conformance.client.tracefs import Tracefs

DOC = "ftrace.rst@v6.12"
LISTED = "set_event_pid: only the listed tasks are traced"
case = surface("pid_filter", doc=DOC, level="detail", tier="full", isolation="global")

ONLY, BUT = "set_event_pid", "set_event_notrace_pid"


def listed(process: Process, files: Tracefs, file: str) -> None:
    """Write the process's own PID to a list."""
    assert process.write_pid(files.path(file)).errno == ""


def emptied(files: Tracefs, file: str) -> None:
    """Open a list with O_TRUNC."""
    assert files.write(files.path(file), "\n", os.O_WRONLY | os.O_TRUNC).value == 1


@case(spec="trace_events.c:trace_event_ignore_this_pid", doc=LISTED)
@variants(("only", ONLY, "a=0x1 (1)"), ("but", BUT, "a=0x2 (2)"))
def test_recorded(ue: UserEvents, file: str, recorded: str) -> None:
    """Of two writers one is recorded; both writes return their full count."""
    event = ue.event("u16 a")
    other = ue.event("u16 a", of=ue.new_process()).data
    listed(ue.process, ue.tracefs, file)
    event.enable()
    assert (event.write(b"\1\0").value, other.write_event(0, b"\2\0").value) == (6, 6)
    dump = {ONLY: "01 00", BUT: "02 00"}[file]
    assert ue.tracefs.records() == [ue.line(recorded, dump=dump)]
    emptied(ue.tracefs, file)
    assert ue.tracefs.read(ue.tracefs.path(file)).text == ""
    assert (event.write(b"\3\0").value, other.write_event(0, b"\4\0").value) == (6, 6)
    assert ue.tracefs.records()[1:] == [
        ue.line("a=0x3 (3)", dump="03 00"),
        ue.line("a=0x4 (4)", dump="04 00"),
    ]


@case(spec="trace_events.c:event_pid_write; trace.c:trace_pid_write")
@doc("set_event_pid: only the listed tasks are traced; written without truncation they are added")
@variants(("only", ONLY, (0, 1)), ("but", BUT, (2,)))
def test_added(ue: UserEvents, file: str, kept: tuple[int, ...]) -> None:
    """A process is added to the list; those already listed stay."""
    processes = [ue.process, ue.new_process(), ue.new_process()]
    files = [process.open_data() for process in processes]
    for data in files:
        data.register(ue.name() + " u8 a")
    ue.tracefs.enable(ue.name())
    for process in processes[:2]:
        listed(process, ue.tracefs, file)
    for number, data in enumerate(files):
        assert data.write_event(0, bytes([number])).value == 5
    lines = [ue.line(f"a=({number})", dump=f"{number:02x}") for number in kept]
    assert ue.tracefs.records() == lines
    emptied(ue.tracefs, file)
    assert files[0].write_event(0, b"\3").value == 5
    assert ue.tracefs.records() == [*lines, ue.line("a=(3)", dump="03")]


@case(spec="user_event_reg", level="behaviour")
@doc("@v6.12: Status: the bit is set while something is attached; silent about lists of processes")
@variants({"only": ONLY, "but": BUT})
def test_nobody_is_told(ue: UserEvents, file: str) -> None:
    """The enable word of a process that is not recorded is set all the same."""
    event = ue.event("u16 a")
    own = ue.new_process().open_data().register(ue.name() + " u16 a")
    event.enable()
    listed(ue.process, ue.tracefs, file)
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    if ue.profile.has("remote_enable"):
        assert (event.word.value, own.word.value) == (1, 1)
    assert ue.tracefs.enabled(ue.name()).text == "1\n"
    emptied(ue.tracefs, file)
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")


@case(spec="trace_events.c:trace_create_new_event", doc=LISTED)
@variants({"only": ONLY, "but": BUT})
def test_later_event(ue: UserEvents, file: str) -> None:
    """An event registered after the list was written is filtered by it as well."""
    other = ue.new_process()
    listed(ue.process if file == ONLY else other, ue.tracefs, file)
    event = ue.event("u16 a")
    apart = ue.event("u16 a", of=other).data
    event.enable()
    assert (event.write(b"\1\0").value, apart.write_event(0, b"\2\0").value) == (6, 6)
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]


@case(spec="trace.c:trace_ignore_this_task")
@doc("set_event_pid: only the listed tasks are traced; set_event_notrace_pid has precedence")
def test_both_lists(ue: UserEvents) -> None:
    """A process in both lists is not recorded."""
    event = ue.event("u16 a", enabled=True)
    listed(ue.process, ue.tracefs, ONLY)
    listed(ue.process, ue.tracefs, BUT)
    assert event.write(b"\1\0").value == 6
    emptied(ue.tracefs, BUT)
    assert event.write(b"\2\0").value == 6
    assert ue.tracefs.records() == [ue.line("a=0x2 (2)", dump="02 00")]


@case(spec="trace_events.c:event_filter_pid_sched_process_fork")
@doc("set_event_pid: only the listed tasks are traced;")
@doc("children are only with the option event-fork")
def test_child(ue: UserEvents) -> None:
    """A child is not added to the list of its parent."""
    event = ue.event("u16 a", enabled=True)
    listed(ue.process, ue.tracefs, ONLY)
    assert event.data.of(ue.fork(ue.process)).write_event(0, b"\1\0").value == 6
    assert ue.tracefs.records() == []
    assert event.write(b"\2\0").value == 6
    assert ue.tracefs.records() == [ue.line("a=0x2 (2)", dump="02 00")]


@case(spec="trace_events.c:event_pid_write", doc="Instances: the lists of an instance are its own")
def test_of_an_instance(ue: UserEvents) -> None:
    """A list applies to its instance only: other instances record what it filters out."""
    instance, event = create_instance(ue), ue.event("u16 a")
    instance.enable(ue.name())
    event.enable()
    listed(ue.process, instance, BUT)
    assert event.write(b"\1\0").value == 6
    assert instance.records() == []
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]


@case(needs="dynamic_fields_validated unreadable_payload_refused")
@spec("user_events_write_core, user_event_ftrace")
@doc("@v6.12: Writing Data: silent about dynamic fields")
@variants(("left_out", BUT, ""), ("recorded", ONLY, "EFAULT"))
def test_refused_payload(ue: UserEvents, file: str, errno: str) -> None:
    """A record that is filtered out is not validated; unreadable memory is EFAULT regardless."""
    event = ue.event("__rel_loc char[] a", enabled=True)
    listed(ue.process, ue.tracefs, file)
    # Without the terminating NUL.
    assert event.write(b"\0\0\2\0hi").errno == errno
    page = ue.process.map()
    ue.process.store(page + 4088, bytes(8))
    assert event.data.write_at(page + 4088, 12).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(spec="trace.c:trace_pid_write; lib/kstrtox.c:kstrtoul")
@doc("set_event_pid: only the listed tasks are traced; numbers of processes are written")
@variants({"word": "self", "negative": "-1", "event": "user_events", "star": "*"})
def test_no_number(ue: UserEvents, text: str) -> None:
    """Text that is no number is EINVAL, and the list does not change."""
    event = ue.event("u16 a")
    other = ue.event("u16 a", of=ue.new_process()).data
    event.enable()
    listed(ue.process, ue.tracefs, ONLY)
    assert ue.tracefs.write(ue.tracefs.path(ONLY), text).errno == "EINVAL"
    assert (event.write(b"\1\0").value, other.write_event(0, b"\2\0").value) == (6, 6)
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]


@case(spec="trace.c:trace_pid_write")
@doc("set_event_pid: only the listed tasks are traced; silent about several in one write")
def test_all_or_none(ue: UserEvents) -> None:
    """A write of which one word is refused adds no process."""
    event = ue.event("u16 a", enabled=True)
    assert ue.tracefs.write(ue.tracefs.path(ONLY), "1 x").errno == "EINVAL"
    event.write(b"\1\0")
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]
    assert ue.tracefs.write(ue.tracefs.path(ONLY), "1\n1").value == 3
    event.write(b"\2\0")
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]
