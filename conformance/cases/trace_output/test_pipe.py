"""trace_pipe: records are consumed as text, and counted."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.instances import create_instance, enabled_in
from conformance.client.pipes import Pipe
from conformance.client.tracefs import Tracefs
from conformance.ops import View

DOC = "ftrace.rst@v6.12"
case = surface("trace_pipe", doc=DOC, level="detail", tier="full", isolation="global")


def line(ue: UserEvents, number: int) -> str:
    """The line of a record with a one-digit number."""
    return ue.line(f"a=0x{number} ({number})", dump=f"0{number} 00")


def counted(files: Tracefs, cpu: int = 0) -> str:
    """The stats file of a CPU, without bytes and timestamps."""
    return files.read(files.path(f"per_cpu/cpu{cpu}/stats"), View.COUNTS).text


@case(spec="trace.c:tracing_read_pipe", doc="trace_pipe: reading consumes", tier="quick")
def test_consumes(ue: UserEvents) -> None:
    """Records are read in order and consumed: EAGAIN where a reader would block."""
    event = ue.event("u16 a", enabled=True)
    pipe = Pipe(ue.process, ue.tracefs)
    assert pipe.read().errno == "EAGAIN"
    event.write(b"\1\0")
    event.write(b"\2\0")
    assert len(ue.tracefs.records()) == 2
    assert pipe.records() == [line(ue, 1), line(ue, 2)]
    assert pipe.read().errno == "EAGAIN"
    assert ue.tracefs.records() == []
    event.write(b"\3\0")
    assert pipe.records() == [line(ue, 3)]


@case(spec="trace.c:tracing_read_pipe", doc="trace_pipe: reading consumes")
def test_one_reader_of_two(ue: UserEvents) -> None:
    """A record consumed in one instance stays in another, and is never read twice."""
    instance = create_instance(ue)
    data = enabled_in(ue, "u16 a", ue.tracefs, instance)
    pipe, other = Pipe(ue.process, ue.tracefs), Pipe(ue.process, instance)
    data.write_event(0, b"\1\0")
    assert other.records() == [line(ue, 1)]
    assert other.read().errno == "EAGAIN"
    data.write_event(0, b"\2\0")
    assert pipe.records() == [line(ue, 1), line(ue, 2)]
    assert instance.records() == [line(ue, 2)]


@case(spec="trace.c:tracing_read_pipe; trace.c:trace_find_next_entry_inc")
@doc("trace_pipe: reading consumes; per_cpu has one for each processor")
def test_of_a_processor(ue: UserEvents) -> None:
    """The pipe of the writing CPU returns the record, and consumes it for all readers."""
    ue.process.pin(0)
    event = ue.event("u16 a", enabled=True)
    pipe = Pipe(ue.process, ue.tracefs, cpu=0)
    assert pipe.read().errno == "EAGAIN"
    event.write(b"\1\0")
    event.write(b"\2\0")
    assert pipe.records() == [line(ue, 1), line(ue, 2)]
    assert pipe.read().errno == "EAGAIN"
    assert ue.tracefs.records() == []


@case(spec="trace.c:tracing_read_pipe", doc="trace_pipe: reading consumes")
@variants("event", "tracing")
def test_of_what_was(ue: UserEvents, ended: str) -> None:
    """Records stay readable after the event is disabled or the buffer turned off."""
    event = ue.event("u16 a", enabled=True)
    pipe = Pipe(ue.process, ue.tracefs)
    event.write(b"\1\0")
    if ended == "event":
        ue.tracefs.disable(ue.name())
    else:
        ue.tracefs.write(ue.tracefs.path("tracing_on"), "0")
        assert event.write(b"\2\0").value == 6
    assert pipe.records() == [line(ue, 1)]
    assert pipe.read().errno == "EAGAIN"


@case(spec="trace.c:tracing_stats_read", doc="trace_pipe: reading consumes")
def test_counts(ue: UserEvents) -> None:
    """A record counts as an entry until it is read, and as read from then on."""
    ue.process.pin(0)
    instance = create_instance(ue)
    data = enabled_in(ue, "u16 a", instance)
    pipe = Pipe(ue.process, instance)
    rest = "overrun: 0\ncommit overrun: 0\ndropped events: 0\n"
    assert counted(instance) == f"entries: 0\n{rest}read events: 0\n"
    data.write_event(0, b"\1\0")
    data.write_event(0, b"\2\0")
    assert counted(instance) == f"entries: 2\n{rest}read events: 0\n"
    pipe.read()
    assert counted(instance) == f"entries: 0\n{rest}read events: 2\n"
    data.write_event(0, b"\3\0")
    instance.clear_trace()
    assert counted(instance) == f"entries: 0\n{rest}read events: 0\n"


@case(spec="user_event_ftrace: discard", needs="dynamic_fields_validated")
@doc("trace_pipe: reading consumes; silent about what was refused")
@variants(
    ("refused", "1", b"\0\0\2\0hi", "EFAULT"),
    ("too_long", "1", b"\0\0\0\0" + bytes(4061), ""),
    ("turned_off", "0", b"\0\0\0\0", ""),
)
def test_not_counted(ue: UserEvents, tracing: str, payload: bytes, errno: str) -> None:
    """A rejected or oversized write, or one to a buffer turned off, is neither entry nor drop."""
    ue.process.pin(0)
    instance = create_instance(ue)
    data = enabled_in(ue, "__rel_loc char[] a", instance)
    instance.write(instance.path("tracing_on"), tracing)
    assert data.write_event(0, payload).errno == errno
    nothing = "entries: 0\noverrun: 0\ncommit overrun: 0\ndropped events: 0\nread events: 0\n"
    assert counted(instance) == nothing
    assert instance.records() == []


@case(spec="fs/tracefs/inode.c: the root directory has mode 0700", isolation="events")
@doc("trace_pipe: reading consumes")
def test_ordinary_user(ue: UserEvents) -> None:
    """An unprivileged user cannot read records: EACCES."""
    ue.process.setuid()
    assert Pipe(ue.process, ue.tracefs).opened.errno == "EACCES"
