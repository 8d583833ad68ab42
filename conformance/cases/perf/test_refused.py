"""Records that perf does not get: filters, invalid payloads, and the result of the write."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.perf_samples import A, with_perf, with_ring, without_raw
from conformance.client.addresses import PAGE
from conformance.client.memory import discard
from conformance.client.perf import PERIOD, PerfAttr, open_perf

SPEC = "trace_events_filter.c"
case = surface("perf", spec=SPEC, level="detail", needs="perf_sink", facilities="perf")


@case(level="behaviour", needs="perf_sink dynamic_fields_validated")
@spec("trace_events_user.c:user_event_validate")
@doc("Writing Data: silent about dynamic fields")
@variants(
    ("rel_loc.end", "__rel_loc char[] s", b"\0\0\1\0"),
    ("rel_loc.nul", "__rel_loc char[] s", b"\0\0\2\0hi"),
    ("data_loc.end", "__data_loc u8[] s", b"\x0c\0\1\0"),
)
def test_invalid(ue: UserEvents, fields: str, payload: bytes) -> None:
    """With only perf, dynamic data out of bounds or without NUL is EFAULT and not counted."""
    event, perf, ring = with_ring(ue, fields)
    assert event.write(payload).errno == "EFAULT"
    assert ring.lines() == ["head 0 tail 0"]
    assert perf.count == 0
    # The recursion context was released: the next record is sampled.
    assert event.write(b"\0\0\1\0\0").ok
    assert perf.count == 1


@case(level="behaviour", needs="perf_sink unreadable_payload_refused", tier="full")
@spec("trace_events_user.c:user_events_write_core: fault_in_iov_iter_readable")
@doc("Writing Data: silent about payloads that cannot be read")
@variants({"none": 0, "half": 2})
def test_unreadable(ue: UserEvents, readable: int) -> None:
    """With only perf, an unreadable payload is EFAULT, whether perf counts or not."""
    data = ue.event("u32 a").data
    event = open_perf(ue.process, ue.name())
    address = ue.process.map() + PAGE - 4 - readable
    ue.process.store(address, bytes(4 + readable))
    assert data.write_at(address, 8).errno == "EFAULT"
    event.disable()
    assert data.write_at(address, 8).errno == "EFAULT"
    assert event.count == 0


@case(level="contract", needs="perf_sink payload_size_checked")
@spec("trace_events_user.c:user_events_write_core")
@doc("Writing Data: for an int payload the data have to be 8 bytes, index and payload")
def test_short(ue: UserEvents) -> None:
    """A payload shorter than the fields is EINVAL, and reaches neither perf nor ftrace."""
    event, perf = with_perf(ue)
    assert event.write(b"\x41\0\0").errno == "EINVAL"
    assert perf.count == 0


@case(spec="trace_event_perf.c:perf_trace_buf_alloc", needs="perf_sink long-record-stops-buffer")
@doc("Writing Data: silent about the longest payload")
@variants((8184, 0, 8208), (4065, 0, 4088), (4064, 1, 4088))
def test_longest(ue: UserEvents, length: int, traced: int, size: int) -> None:
    """perf takes payloads of 8184 bytes, ftrace drops those over 4064; both silently."""
    event, perf = with_perf(ue)
    ring = perf.map(5)
    ue.tracefs.enable(ue.name())
    assert event.write(A + b"\xee" * (length - 4)).value == 4 + length
    (record,) = ring.records()
    assert record.startswith(f"SAMPLE misc 1 size {size} raw {size - 12}: 41 00 00 00 ee")
    # A dump of more than a page is left out.
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="")] * traced
    assert perf.count == 1


@case(spec="user_events_write_core: fault_in_iov_iter_readable of all that is written", tier="full")
@doc("Writing Data: silent about pages that are not resident")
def test_page_behind_is_away(ue: UserEvents) -> None:
    """A payload of three pages is sampled to its end, even if the last is not present yet."""
    event, perf = with_perf(ue)
    ring = perf.map(5)
    at = ue.process.map(3, shared=True)
    ue.process.store(at, bytes(2 * PAGE) + b"\xee" * PAGE)
    discard(ue.process, at + 2 * PAGE)
    start = at + PAGE - 100
    assert event.data.write_at(start, 8184).value == 8184
    (record,) = ring.records()
    assert record.count(" ee") == 8184 - 100 - PAGE


@case(
    level="behaviour",
    profiles="6.1..",
    needs="perf_sink",
    tier="full",
    isolation="fatal",
    bug="perf-warns-on-long-record",
)
@spec("trace_events_user.c:user_event_perf")
@doc("Writing Data: silent about the longest payload")
def test_too_long(ue: UserEvents) -> None:
    """perf drops a payload of 8185 bytes silently, and takes the next record."""
    event, perf = with_perf(ue)
    assert event.write(A + b"\xee" * 8181).value == 8189
    assert perf.count == 0
    assert event.write(A).value == 8
    assert perf.count == 1


@case(needs="perf_sink long-record-stops-buffer", isolation="global")
@spec("trace_events_user.c:user_event_perf")
@doc("Writing Data: silent about two tracers")
@variants(("tracing_off", 0, 13), ("too_long", 1, 4065))
def test_dropped_by_ftrace(ue: UserEvents, tracing: int, length: int) -> None:
    """perf validates a record that ftrace drops silently: the write fails because of perf."""
    event = ue.event("__rel_loc char[] s", enabled=True)
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", f"{tracing}\n")
    invalid = b"\0\0\xff\xff".ljust(length, b"\0")
    assert event.write(invalid).value == 4 + length
    perf = open_perf(ue.process, ue.name())
    assert event.write(invalid).errno == "EFAULT"
    assert perf.count == 0


@case(spec="trace_events_user.c:user_event_perf", level="behaviour")
@doc("Writing Data: silent about two tracers")
def test_dropped_by_perf(ue: UserEvents) -> None:
    """A record that perf has no room for, or that its filter rejects, still reaches ftrace."""
    event = ue.event("u32 a", enabled=True)
    full, filtered = open_perf(ue.process, ue.name()), open_perf(ue.process, ue.name())
    ring = full.map(1)
    filtered.set_filter("a == 1")
    assert event.write(A).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]
    assert (full.count, filtered.count) == (1, 0)
    assert ue.process.load(ring.address + 1024, 8).data == bytes(8)


@case(spec="ftrace_profile_set_filter", tier="full")
@doc("events.rst@v6.12: Event filtering: field, operator, value")
@variants(
    ("equal", "a == 66", 1),
    ("unequal", "a != 66", 2),
    ("greater", "a > 65", 2),
    # The field is signed.
    ("negative", "b < 0", 1),
    ("none", "a == 0", 0),
)
def test_filter(ue: UserEvents, text: str, count: int) -> None:
    """With a numeric filter only records that match are sampled and counted."""
    event, perf, ring = with_ring(ue, "u32 a; s16 b", PerfAttr(sample_type=PERIOD))
    assert perf.set_filter(text).value == 0
    for payload in (b"\x41\0\0\0\0\0", b"\x42\0\0\0\xff\xff", b"\x43\0\0\0\1\0"):
        assert event.write(payload).value == 10
    sample = without_raw(ue, "SAMPLE misc 1 size 16 period 1", record=14)
    assert ring.records() == [sample] * count
    assert perf.count == count


@case(spec="parse_pred", doc="events.rst@v6.12: Event filtering: strings with ==, != and ~")
@variants(
    ("char", "char[4] s", [b"hi\0\0", b"ho\0\0"]),
    ("rel_loc", "__rel_loc char[] s", [b"\0\0\3\0hi\0", b"\0\0\3\0ho\0"]),
    ("data_loc", "__data_loc char[] s", [b"\x0c\0\3\0hi\0", b"\x0c\0\3\0ho\0"]),
)
def test_filter_string(ue: UserEvents, fields: str, payloads: list[bytes]) -> None:
    """Strings can be filtered since 6.4; before, no field is typed as a string: EINVAL."""
    event, perf = with_perf(ue, fields)
    errno = ue.dated("remote_enable", since="", before="EINVAL")
    assert perf.set_filter('s == "ho"').errno == errno
    for payload in payloads:
        event.write(payload)
    assert perf.count == ue.dated("remote_enable", since=1, before=2)


@case(spec="ftrace_profile_set_filter", doc="events.rst@v6.12: Event filtering", tier="full")
def test_filter_refused(ue: UserEvents) -> None:
    """A filter on an unknown field is EINVAL, one at a bad address EFAULT, a second one EEXIST."""
    event, perf = with_perf(ue)
    assert perf.set_filter("b == 1").errno == "EINVAL"
    assert perf.set_filter('a == "x"').errno == "EINVAL"
    assert perf.ioctl(0x40082406, 0).errno == "EFAULT"
    # The rejected filters left none behind.
    event.write(A)
    assert perf.count == 1
    assert perf.set_filter("a == 1").value == 0
    assert perf.set_filter("a == 65").errno == "EEXIST"
    assert perf.set_filter("b == 1").errno == "EEXIST"
    event.write(A)
    assert perf.count == 1
