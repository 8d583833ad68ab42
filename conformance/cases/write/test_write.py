"""write() on user_events_data: a write is one record, and needs an enabled event."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.writing import INDEX, RECORD
from conformance.client.tracefs import TRACING_ON
from conformance.client.user_events import UserEvents

case = surface(
    "write",
    spec="trace_events_user.c:user_events_write_core",
    doc="Documentation/trace/user_events.rst@v6.12",
    tier="full",
)


@case(
    doc="Writing Data: the data begin with the write index, the rest is the payload", tier="quick"
)
@variants(
    ("u8", " u8 a", b"\1", 5),
    ("u64", " u64 a", bytes(8), 12),
    ("struct3000", " struct s a 3000", bytes(3000), 3004),
)
def test_returns_all_bytes(ue: UserEvents, fields: str, payload: bytes, returned: int) -> None:
    """A successful write returns the combined length of index and payload."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, payload).value == returned
    assert len(ue.tracefs.records()) == 1


@case(doc="Writing Data: every write is an entry of its own")
def test_records_in_order(ue: UserEvents) -> None:
    """Every write is one record, in the order of writing, whatever the system call."""
    data = ue.event("u16 n", enabled=True).data
    data.write(b"\0\0\0\0\1\0")
    data.writev([b"\0\0\0\0", b"\2\0"])
    data.pwrite(b"\0\0\0\0\3\0", 0)
    data.pwritev([b"\0\0\0\0\4\0"], 0)
    assert ue.tracefs.records() == [
        ue.line("n=0x1 (1)", dump="01 00"),
        ue.line("n=0x2 (2)", dump="02 00"),
        ue.line("n=0x3 (3)", dump="03 00"),
        ue.line("n=0x4 (4)", dump="04 00"),
    ]


@case(
    spec="the tracepoint decides, not the word",
    doc="Status: programs check the bit themselves",
    profiles="6.4..",
    needs="ebadf_when_disabled",
)
def test_word_not_consulted(ue: UserEvents) -> None:
    """The kernel does not read the enable word: clearing or setting it does not affect a write."""
    event = ue.event("u32 a")
    ue.process.store(event.word.address, b"\1\0\0\0")
    assert event.data.write(RECORD).errno == "EBADF"
    event.enable()
    ue.process.store(event.word.address, b"\0\0\0\0")
    assert event.data.write(RECORD).value == 8
    assert ue.tracefs.records() == [f"{ue.name()}: a=0x41 (65)"]


@case(
    spec="tp->key.enabled", doc="Writing Data: silent about what a write without a listener returns"
)
@variants({"exact": b"\1\0\0\0", "longer": b"\1\0\0\0more"})
def test_nobody_listens(ue: UserEvents, payload: bytes) -> None:
    """Writing an event that is not enabled, or no longer enabled, is EBADF."""
    event = ue.event("u32 a")
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert event.write(payload).errno == errno
    assert event.data.writev([INDEX, payload]).errno == errno
    event.enable()
    event.disable()
    assert event.write(payload).errno == errno
    assert ue.tracefs.records() == []


@case(
    spec="each event has a tracepoint of its own",
    doc="Status: a tool attaches to one event",
    tier="quick",
)
def test_listener_of_another_event(ue: UserEvents) -> None:
    """A tracer of one event gets no records of another event of the same file."""
    data = ue.open_data()
    data.register(ue.name("a") + " u8 x")
    data.register(ue.name("b") + " u8 x")
    ue.tracefs.enable(ue.name("a"))
    written = data.write_event(1, b"\1")
    assert written.errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, b"\1").value == 5
    assert ue.tracefs.records() == [ue.line("x=(1)", name="a", dump="01")]


@case(
    spec="ring_buffer.c:ring_buffer_lock_reserve, trace_events_user.c:user_event_ftrace",
    doc="Writing Data: silent about tracing_on",
    isolation="global",
)
def test_tracing_off(ue: UserEvents) -> None:
    """With tracing_on 0 a write succeeds, records nothing and validates nothing."""
    data = ue.open_data()
    data.register(ue.name("a") + " u32 a")
    data.register(ue.name("b") + " __data_loc char[] s")
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.enable(ue.name("b"))
    ue.tracefs.write(TRACING_ON, "0\n")
    assert data.write(RECORD).value == 8
    assert data.write_event(1, b"\xff\xff\xff\xff").value == 8
    ue.tracefs.write(TRACING_ON, "1\n")
    errno = ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert data.write_event(1, b"\xff\xff\xff\xff").errno == errno
    dumps = ue.dated("dynamic_fields_validated", since=[], before=["ff ff ff ff"])
    assert ue.tracefs.records() == dumps
