"""perf as a tracer in the first version: the byte, the lines, and the samples."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.rfc_v1 import bound_data, enabled_data, page_of
from conformance.client.perf import COUNTING, PerfAttr, open_perf
from conformance.client.rfc_v1 import register

DOC = "trace_events_user.c@rfc-v1, message of the patch: data get into perf"
BITS = "trace_events_user.c@rfc-v1: bit 0 is ftrace, bit 1 perf, bit 7 any other tracer"
case = surface("rfc", doc=DOC, level="behaviour", profiles="rfc-v1", facilities="perf")

STOPPED = PerfAttr(disabled=True)
A_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 61 00 00 00"


@case(spec="update_reg_page_for", doc=BITS)
@variants({"sampling": PerfAttr(), "counting": COUNTING, "disabled": STOPPED})
def test_perf_byte(ue: UserEvents, attr: PerfAttr) -> None:
    """The byte is 2 while a perf event is open, counting or not, and 3 together with ftrace."""
    page = page_of(ue.process)
    place = register(ue.open_data(), ue.name()).value
    event = open_perf(ue.process, ue.name(), attr)
    seen = [page.shows(place)]
    ue.tracefs.enable(ue.name())
    seen.append(page.shows(place))
    event.close()
    seen.append(page.shows(place))
    ue.tracefs.disable(ue.name())
    seen.append(page.shows(place))
    assert seen == [2, 3, 1, 0]


@case(spec="trace_event_perf.c:perf_trace_event_unreg", doc=BITS, level="detail")
def test_perf_last(ue: UserEvents) -> None:
    """The byte is 2 until the last perf event is closed, by any process."""
    page = page_of(ue.process)
    place = register(ue.open_data(), ue.name()).value
    other = ue.new_process()
    mine, theirs = open_perf(ue.process, ue.name()), open_perf(other, ue.name())
    mine.close()
    assert page.shows(place) == 2
    theirs.close()
    assert page.shows(place) == 0


@case(spec="user_event_show", doc="an event that is hooked shows by whom")
def test_perf_shown(ue: UserEvents) -> None:
    """dynamic_events names perf after ftrace while each uses the event."""
    bound_data(ue, ue.name() + ";u32\ta\t4\t0")
    event = open_perf(ue.process, ue.name())
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name()};u32 a (Used by perf)\n"
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name()};u32 a (Used by ftrace perf)\n"
    event.close()
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name()};u32 a (Used by ftrace)\n"
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name()};u32 a\n"


@case(spec="delete_user_event; trace_events.c:probe_remove_event_call")
@doc("trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
@variants({"ioctl": False, "dynamic_events": True})
def test_perf_deletion(ue: UserEvents, by_command: bool) -> None:
    """An event used by perf is deleted by neither interface: EBUSY, until it is closed."""
    ue.tracefs.command(f"ue:{ue.name()}\n")
    data = ue.open_data()
    event = open_perf(ue.process, ue.name(), STOPPED)
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno == "EBUSY"
    assert ue.tracefs.definitions() == f"ue:{ue.name()}\n"
    event.close()
    if by_command:
        assert ue.tracefs.command(f"-:{ue.name()}\n").errno == ""
    else:
        assert data.delete(ue.name()).value == 0
    assert ue.tracefs.definitions() == ""


@case(spec="user_event_perf")
@variants(
    ("number", b"\x2a\0\0\0", "size 24 raw 12: 2a 00 00 00"),
    ("shorter", b"\x2a", "size 24 raw 12: 2a 00 00 00"),
    ("longer", b"\x2a\0\0\0more", "size 32 raw 20: 2a 00 00 00 6d 6f 72 65 00 00 00 00"),
    ("like-an-index", b"\xff\xff\xff\xff\1", "size 32 raw 20: ff ff ff ff 01 00 00 00 00 00 00 00"),
)
def test_perf_sample(ue: UserEvents, payload: bytes, sample: str) -> None:
    """A raw sample is 8 common bytes and the written data, padded to a multiple of 8."""
    data = bound_data(ue, ue.name() + ";u32\ta\t4\t0")
    event = open_perf(ue.process, ue.name())
    ring = event.map()
    assert data.write(payload).value == len(payload)
    assert ring.records() == [f"SAMPLE misc 1 {sample}"]
    assert event.count == 1


@case(spec="fs/read_write.c:do_loop_readv_writev", level="detail")
def test_perf_segments(ue: UserEvents) -> None:
    """Every segment of writev(2) is a separate sample."""
    data = bound_data(ue, ue.name() + ";u32\ta\t4\t0;u32\tb\t4\t4")
    event = open_perf(ue.process, ue.name())
    ring = event.map()
    assert data.writev([b"a", b"", b"four", b"b"]).value == 6
    assert ring.records() == [
        "SAMPLE misc 1 size 24 raw 12: 61 00 00 00",
        "SAMPLE misc 1 size 24 raw 12: 66 6f 75 72",
        "SAMPLE misc 1 size 24 raw 12: 62 00 00 00",
    ]
    assert event.count == 3


@case(spec="user_events_write")
def test_perf_and_ftrace(ue: UserEvents) -> None:
    """ftrace and perf get the same data; attaching one does not affect the other."""
    data = bound_data(ue, ue.name())
    event = open_perf(ue.process, ue.name())
    ring = event.map()
    assert data.write(b"1").value == 1
    ue.tracefs.enable(ue.name())
    assert data.write(b"a").value == 1
    event.disable()
    assert data.write(b"2").value == 1
    assert ring.records() == ["SAMPLE misc 1 size 24 raw 12: 31 00 00 00", A_SAMPLE]
    assert ue.tracefs.records() == ["61", "32"]


@case(spec="trace_event_perf.c:perf_trace_buf_alloc", level="detail")
@variants((4065, 0), (8184, 0), (4000, 1))
def test_perf_longer(ue: UserEvents, length: int, records: int) -> None:
    """perf counts data that is too long for the ftrace buffer."""
    data = enabled_data(ue)
    event = open_perf(ue.process, ue.name(), COUNTING)
    assert data.write(b"x" * length).value == length
    assert event.count == 1
    assert len(ue.tracefs.records()) == records


@case(spec="user_event_perf: hlist_empty")
@doc("data get into perf; silent of events of perf that are disabled")
@variants({"null": 0, "unmapped": 0x1000_0000})
def test_perf_disabled(ue: UserEvents, address: int) -> None:
    """While perf is disabled nothing is counted and no data is read: unreadable data is fine."""
    data = bound_data(ue, ue.name())
    event = open_perf(ue.process, ue.name(), STOPPED)
    ring = event.map()
    assert (data.write_at(address, 8).value, data.write(b"b").value) == (8, 1)
    assert event.count == 0
    event.enable()
    assert data.write(b"a").value == 1
    assert event.count == 1
    assert ring.records() == [A_SAMPLE]


@case(doc="data get into perf; silent of what cannot be read", level="detail", isolation="fatal")
@spec("user_event_perf: no perf_swevent_put_recursion_context()")
@variants({"nothing": 0, "half": 4})
def test_perf_unreadable(ue: UserEvents, readable: int) -> None:
    """After unreadable data perf gets no write on that CPU, of any user event."""
    ue.process.pin(0)
    data, other = bound_data(ue, ue.name()), bound_data(ue, ue.name("other"))
    event, untouched = open_perf(ue.process, ue.name()), open_perf(ue.process, ue.name("other"))
    ring = event.map()
    assert data.write(b"a").value == 1
    address = ue.process.place(bytes(8)) + 8 - readable
    assert (data.write_at(address, 8).value, data.write(b"b").value) == (8, 1)
    assert other.write(b"c").value == 1
    assert (event.count, untouched.count) == (1, 0)
    assert ring.records() == [A_SAMPLE]
    # A perf event opened now is affected as well; ftrace has its own buffer.
    ue.tracefs.enable(ue.name())
    again = open_perf(ue.process, ue.name())
    assert data.write(b"d").value == 1
    assert again.count == 0
    assert ue.tracefs.records() == ["64"]
