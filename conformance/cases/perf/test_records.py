"""perf samples of user events, byte by byte."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.perf_samples import A_SAMPLE, B_SAMPLE, A, with_ring, without_raw
from conformance.client.perf import IP, PERIOD, RAW, TID, PerfAttr, open_perf

SPEC = "user_event_perf"
DOC = "Overview: written data can be viewed by ftrace and perf; silent about the bytes of a sample"
case = surface("perf", SPEC, DOC, level="behaviour", needs="perf_sink", facilities="perf")


@case(level="contract", needs="", switch="perf_sink")
@doc("Overview, Writing Data: the payload can be viewed by perf, the write index is not emitted")
def test_record(ue: UserEvents) -> None:
    """A write with only perf enabled is counted and sampled, without its index."""
    event, perf, ring = with_ring(ue)
    assert event.write(A).value == 8
    # The first commit has no perf support: the event stays disabled.
    lines = ["head 24 tail 0", A_SAMPLE]
    assert ring.lines() == ue.dated("perf_sink", since=lines, before=["head 0 tail 0"])
    assert perf.count == ue.dated("perf_sink", since=1, before=0)


@case(spec="user_event_perf; kernel/events/core.c:perf_output_sample")
@doc("include/uapi/linux/perf_event.h@v6.12:PERF_RECORD_SAMPLE: size and bytes of the raw record,")
@doc("padded to 8 with them")
@variants(
    ("u64", "u64 a", b"12345678", 12, "size 32 raw 20: 31 32 33 34 35 36 37 38 00 00 00 00"),
    ("u8", "u8 a", b"1", 5, "size 24 raw 12: 31 00 00 00"),
    ("u16", "u16 a", b"12", 6, "size 24 raw 12: 31 32 00 00"),
    ("char5", "char[5] a", b"abcd\0", 9, "size 32 raw 20: 61 62 63 64 00 00 00 00 00 00 00 00"),
    (
        "u32.u64",
        "u32 a; u64 b",
        b"123412345678",
        16,
        "size 32 raw 20: 31 32 33 34 31 32 33 34 35 36 37 38",
    ),
    ("longer", "u32 a", b"1234xyz", 11, "size 32 raw 20: 31 32 33 34 78 79 7a 00 00 00 00 00"),
    (
        "rel_loc",
        "__rel_loc char[] s; u16 a",
        b"\x02\0\x03\x0012hi\0",
        13,
        "size 32 raw 20: 02 00 03 00 31 32 68 69 00 00 00 00",
    ),
    (
        "data_loc",
        "__data_loc char[] s",
        b"\x0c\0\x03\0hi\0",
        11,
        "size 32 raw 20: 0c 00 03 00 68 69 00 00 00 00 00 00",
    ),
)
def test_raw(ue: UserEvents, fields: str, payload: bytes, returned: int, sample: str) -> None:
    """A raw sample is 8 common bytes and the payload, padded to a multiple of 8."""
    event, _, ring = with_ring(ue, fields)
    assert event.write(payload).value == returned
    assert ring.records() == [f"SAMPLE misc 1 {sample}"]


@case(doc="Writing Data: silent about events without payload")
def test_raw_no_fields(ue: UserEvents) -> None:
    """A record without payload is common bytes and padding; before 6.4 its copy failed."""
    event, _, ring = with_ring(ue, "")
    assert event.write().errno == ue.dated("empty_payload", since="", before="EFAULT")
    sample = ["SAMPLE misc 1 size 24 raw 12: 00 00 00 00"]
    assert ring.records() == ue.dated("empty_payload", since=sample, before=[])


@case(spec="user_events_write_core", tier="full")
@doc("Writing Data: the first vector is the index, the others the payload;")
@doc("silent about other pieces")
def test_raw_in_pieces(ue: UserEvents) -> None:
    """The pieces of a writev are one record, wherever the index ends."""
    data = ue.event("u32 a; u64 b").data
    ring = open_perf(ue.process, ue.name()).map()
    assert data.writev([b"\0\0", b"\0\x001234", b"", b"1234", b"5678"]).value == 16
    assert ring.records() == ["SAMPLE misc 1 size 32 raw 20: 31 32 33 34 31 32 33 34 35 36 37 38"]


@case(spec="kernel/events/core.c:perf_prepare_sample", level="detail", tier="full")
@doc("include/uapi/linux/perf_event.h@v6.12:PERF_RECORD_SAMPLE: size and bytes of the raw record,")
@doc("padded to 8 with them")
@variants(
    ("tid", TID | RAW, "size 32 one thread raw 12: 41 00 00 00"),
    ("period", PERIOD, "size 16 period 1"),
    ("nothing", 0, "size 8"),
    ("ip", IP, "size 16 in the kernel"),
    ("all", TID | PERIOD | RAW, "size 40 one thread period 1 raw 12: 41 00 00 00"),
    (
        "all_and_ip",
        IP | TID | PERIOD | RAW,
        "size 48 in the kernel one thread period 1 raw 12: 41 00 00 00",
    ),
)
def test_sample_type(ue: UserEvents, sample_type: int, sample: str) -> None:
    """A sample has the requested members, and common_pid is that of the writing thread."""
    event, _, ring = with_ring(ue, attr=PerfAttr(sample_type=sample_type))
    event.write(A)
    if sample_type & RAW or ue.profile.has("raw_data_if_asked"):
        assert ring.records() == [f"SAMPLE misc 1 {sample}"]
    else:
        assert ring.records() == [without_raw(ue, f"SAMPLE misc 1 {sample}", record=12)]


@case(spec="kernel/events/core.c:perf_swevent_event", level="detail", tier="full")
@doc("include/uapi/linux/perf_event.h@v6.12:perf_event_attr: sample_period is how many events")
@doc("there are to a sample")
@variants(("3", 3, RAW, 2), ("0", 0, RAW, 0), ("8", 8, RAW, 0), ("shown.3", 3, PERIOD, 7))
def test_period(ue: UserEvents, period: int, sample_type: int, samples: int) -> None:
    """Of 7 records every third is sampled, all if samples carry their period; all are counted."""
    event, perf, ring = with_ring(ue, attr=PerfAttr(period=period, sample_type=sample_type))
    for number in range(7):
        event.write(bytes([number, 0, 0, 0]))
    third = [f"SAMPLE misc 1 size 24 raw 12: {number} 00 00 00" for number in ("02", "05")]
    each = [without_raw(ue, "SAMPLE misc 1 size 16 period 1", record=12)] * 7
    # The whole first period was left over, and counted twice with the first record.
    twice = ["SAMPLE misc 1 size 24 raw 12: 00 00 00 00"] * (2 if period else 0)
    first = ue.dated("first_period_counted", since=[], before=twice)
    by_period = first + third[:samples]
    assert ring.records() == (each if sample_type == PERIOD else by_period)
    assert perf.count == 7


@case(spec="user_events_write_core; kernel/events/core.c:perf_tp_event")
def test_two_events(ue: UserEvents) -> None:
    """Two perf events get the same record in their own rings, and ftrace gets it, too."""
    event = ue.event("u32 a")
    first, second = open_perf(ue.process, ue.name()), open_perf(ue.process, ue.name())
    rings = first.map(), second.map()
    event.enable()
    assert event.write(A).value == 8
    first.disable()
    assert event.write(b"\x42\0\0\0").value == 8
    assert [ring.records() for ring in rings] == [[A_SAMPLE], [A_SAMPLE, B_SAMPLE]]
    lines = [ue.line("a=0x41 (65)", dump="41 00 00 00"), ue.line("a=0x42 (66)", dump="42 00 00 00")]
    assert ue.tracefs.records() == lines


@case(spec="user_events_write_core", level="contract", tier="full")
@doc("Registering: write_index represents the event when writing data")
def test_events_apart(ue: UserEvents) -> None:
    """A perf event gets the records of its own user event only."""
    data = ue.register(one="u32 a", two="u32 a")
    one = open_perf(ue.process, ue.name("one")).map()
    two = open_perf(ue.process, ue.name("two")).map()
    data.write_event(1, b"\x42\0\0\0")
    data.write_event(0, A)
    assert (one.records(), two.records()) == ([A_SAMPLE], [B_SAMPLE])
