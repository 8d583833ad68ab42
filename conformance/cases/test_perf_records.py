"""What perf gets of the records that are written: samples, lost ones, counts, filters."""

from __future__ import annotations

import mmap

from conformance.cases.declare import case, variants
from conformance.sut.perf import COUNTING, PERIOD, RAW, TID, Wish, listen
from conformance.sut.places import PAGE
from conformance.sut.user_events import UserEvents

RST = "Documentation/trace/user_events.rst@v6.12"
PERF_DOC = "include/uapi/linux/perf_event.h@v6.12"
SAMPLE = f"{PERF_DOC}:PERF_RECORD_SAMPLE: size and bytes of the raw record, padded to 8 with them"
WRITING = f"{RST}: Writing Data: what is written gets to whatever tool is attached"
SINK = "trace_events_user.c:user_event_perf"
CORE = "trace_events_user.c:user_events_write_core"
OUTPUT = "kernel/events/ring_buffer.c:__perf_output_begin"
PERF = ("perf_sink",)
PROFILES = "5.18.."
A = b"\x41\0\0\0"
A_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 41 00 00 00"
B_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 42 00 00 00"


@case(
    "perf.record",
    spec=SINK,
    doc=WRITING,
    profiles=PROFILES,
    switch="perf_sink",
    facilities=("perf",),
)
def test_record(ue: UserEvents) -> None:
    """What is written while perf alone listens is counted and sampled, the index left out."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    ring = event.map()
    assert data.write_event(0, A).value == 8
    # The first version of all knew nothing of perf: nobody listened.
    lines = ["head 24 tail 0", A_SAMPLE]
    assert ring.lines() == ue.dated("perf_sink", since=lines, before=["head 0 tail 0"])
    assert event.count == ue.dated("perf_sink", since=1, before=0)


@case(
    "perf.raw",
    spec="kernel/events/core.c:perf_output_sample",
    doc=SAMPLE,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants(
    "fields, payload, returned, sample",
    {
        "u64": (" u64 a", b"12345678", 12, "size 32 raw 20: 31 32 33 34 35 36 37 38 00 00 00 00"),
        "u8": (" u8 a", b"1", 5, "size 24 raw 12: 31 00 00 00"),
        "u16": (" u16 a", b"12", 6, "size 24 raw 12: 31 32 00 00"),
        "char5": (
            " char[5] a",
            b"abcd\0",
            9,
            "size 32 raw 20: 61 62 63 64 00 00 00 00 00 00 00 00",
        ),
        "u32.u64": (
            " u32 a; u64 b",
            b"123412345678",
            16,
            "size 32 raw 20: 31 32 33 34 31 32 33 34 35 36 37 38",
        ),
        "longer": (" u32 a", b"1234xyz", 11, "size 32 raw 20: 31 32 33 34 78 79 7a 00 00 00 00 00"),
        "rel_loc": (
            " __rel_loc char[] s; u16 a",
            b"\x02\0\x03\x0012hi\0",
            13,
            "size 32 raw 20: 02 00 03 00 31 32 68 69 00 00 00 00",
        ),
        "data_loc": (
            " __data_loc char[] s",
            b"\x0c\0\x03\0hi\0",
            11,
            "size 32 raw 20: 0c 00 03 00 68 69 00 00 00 00 00 00",
        ),
    },
)
def test_raw(ue: UserEvents, fields: str, payload: bytes, returned: int, sample: str) -> None:
    """A raw record is 8 common bytes and the payload as written, filled up to a multiple of 8."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    ring = listen(ue.process, ue.name()).map()
    assert data.write_event(0, payload).value == returned
    assert ring.records() == [f"SAMPLE misc 1 {sample}"]


@case(
    "perf.raw_no_fields", spec=SINK, doc=SAMPLE, profiles=PROFILES, needs=PERF, facilities=("perf",)
)
def test_raw_no_fields(ue: UserEvents) -> None:
    """A record without payload is common bytes and padding; before 6.5 it was a failed copy."""
    data = ue.open_data()
    data.register(ue.name())
    ring = listen(ue.process, ue.name()).map()
    assert data.write_event(0).errno == ue.dated("empty_payload", since="", before="EFAULT")
    sample = ["SAMPLE misc 1 size 24 raw 12: 00 00 00 00"]
    assert ring.records() == ue.dated("empty_payload", since=sample, before=[])


@case(
    "perf.raw_in_pieces",
    spec=CORE,
    doc=WRITING,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_raw_in_pieces(ue: UserEvents) -> None:
    """The pieces of a writev are one record, wherever the index ends."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a; u64 b")
    ring = listen(ue.process, ue.name()).map()
    assert data.writev([b"\0\0", b"\0\x001234", b"", b"1234", b"5678"]).value == 16
    sample = "SAMPLE misc 1 size 32 raw 20: 31 32 33 34 31 32 33 34 35 36 37 38"
    assert ring.records() == [sample]


@case(
    "perf.sample_type",
    spec="kernel/events/core.c:perf_prepare_sample",
    doc=SAMPLE,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants(
    "sample_type, sample",
    {
        "tid": (TID | RAW, "size 32 one thread raw 12: 41 00 00 00"),
        "period": (PERIOD, "size 16 period 1"),
        "nothing": (0, "size 8"),
        "all": (TID | PERIOD | RAW, "size 40 one thread period 1 raw 12: 41 00 00 00"),
    },
)
def test_sample_type(ue: UserEvents, sample_type: int, sample: str) -> None:
    """A sample has what was asked for, and its common_pid is that of the thread that wrote."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ring = listen(ue.process, ue.name(), Wish(sample_type=sample_type)).map()
    data.write_event(0, A)
    assert ring.records() == [f"SAMPLE misc 1 {sample}"]


@case(
    "perf.period",
    spec="kernel/events/core.c:perf_swevent_event",
    doc=f"{PERF_DOC}:perf_event_attr: sample_period is how many events there are to a sample",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants(
    "period, sample_type, samples",
    {"3": (3, RAW, 2), "0": (0, RAW, 0), "8": (8, RAW, 0), "shown.3": (3, PERIOD, 7)},
)
def test_period(ue: UserEvents, period: int, sample_type: int, samples: int) -> None:
    """Of 7 records every third is sampled, all if samples show their period; all are counted."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name(), Wish(period=period, sample_type=sample_type))
    ring = event.map()
    for number in range(7):
        data.write_event(0, bytes([number, 0, 0, 0]))
    third = [
        "SAMPLE misc 1 size 24 raw 12: 02 00 00 00",
        "SAMPLE misc 1 size 24 raw 12: 05 00 00 00",
    ]
    each = ["SAMPLE misc 1 size 16 period 1"] * 7
    assert ring.records() == (each if sample_type == 256 else third)[:samples]
    assert event.count == 7


@case(
    "perf.two_events",
    spec="kernel/events/core.c:perf_tp_event",
    doc=WRITING,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_two_events(ue: UserEvents) -> None:
    """Two events of perf get the same record into rings of their own, ftrace beside them."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    first, second = listen(ue.process, ue.name()), listen(ue.process, ue.name())
    rings = first.map(), second.map()
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, A).value == 8
    first.disable()
    assert data.write_event(0, b"\x42\0\0\0").value == 8
    assert [ring.records() for ring in rings] == [[A_SAMPLE], [A_SAMPLE, B_SAMPLE]]
    lines = [
        ue.line("a=0x41 (65)", dump="41 00 00 00"),
        ue.line("a=0x42 (66)", dump="42 00 00 00"),
    ]
    assert ue.tracefs.records() == lines


@case(
    "perf.events_apart",
    spec="kernel/events/core.c:perf_tp_event",
    doc=WRITING,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_events_apart(ue: UserEvents) -> None:
    """An event of perf gets the records of its own user event and of no other."""
    data = ue.open_data()
    data.register(ue.name("one") + " u32 a")
    data.register(ue.name("two") + " u32 a")
    one = listen(ue.process, ue.name("one")).map()
    two = listen(ue.process, ue.name("two")).map()
    data.write_event(1, b"\x42\0\0\0")
    data.write_event(0, A)
    assert (one.records(), two.records()) == ([A_SAMPLE], [B_SAMPLE])


# The ring


@case(
    "perf.lost",
    spec=OUTPUT,
    doc=f"{PERF_DOC}:PERF_RECORD_LOST",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_lost(ue: UserEvents) -> None:
    """What finds no room in the ring is lost; the next that does says before it how many were."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    ring = event.map()
    # 8 of header, 4 of size, 8 of common fields, 2004 of payload: two do not fit with a third.
    long = b"\xee" * 2004
    assert [data.write_event(0, long).value for _ in range(5)] == [2008] * 5
    assert ring.lines()[0] == "head 4048 tail 0"
    assert event.count == 5
    ring.read_up_to(4048)
    assert data.write_event(0, A).value == 8
    assert ring.lines() == ["head 4096 tail 4048", "LOST misc 0 size 24 lost 3", A_SAMPLE]
    # Said once.
    assert data.write_event(0, A).value == 8
    assert ring.lines()[-1] == "SAMPLE misc 1 size 24 raw 12: 41 00 00 00"
    assert ring.lines()[0] == "head 4120 tail 4048"


@case(
    "perf.lost_exactly_full",
    spec="kernel/events/ring_buffer.c:ring_buffer_has_space",
    doc=WRITING,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants("length, head", {"4068": (4068, 4088), "4076": (4076, 0)})
def test_lost_exactly_full(ue: UserEvents, length: int, head: int) -> None:
    """A ring is never filled to its last byte: a sample as long as it is lost."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ring = listen(ue.process, ue.name()).map()
    assert data.write_event(0, bytes(length)).ok
    assert ring.lines()[0] == f"head {head} tail 0"


@case(
    "perf.wraps",
    spec=OUTPUT,
    doc=f"{PERF_DOC}:perf_event_mmap_page",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_wraps(ue: UserEvents) -> None:
    """A ring that is read goes on at its beginning, in the middle of a sample; heads only grow."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ring = listen(ue.process, ue.name()).map()
    data.write_event(0, bytes(4060))
    ring.read_up_to(4080)
    data.write_event(0, b"1234567890ab")
    lines = [
        "head 4112 tail 4080",
        "SAMPLE misc 1 size 32 raw 20: 31 32 33 34 35 36 37 38 39 30 61 62",
    ]
    assert ring.lines() == lines


@case(
    "perf.overwrites",
    spec="kernel/events/ring_buffer.c:ring_buffer_init",
    doc=f"{PERF_DOC}: a ring mapped without PROT_WRITE is overwritten",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_overwrites(ue: UserEvents) -> None:
    """A ring that is mapped to be read only is overwritten, and nothing is ever lost."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ring = listen(ue.process, ue.name()).map(protection=mmap.PROT_READ)
    assert ring.read_up_to(8).errno == "EFAULT"
    for _ in range(3):
        data.write_event(0, b"\xee" * 2004)
    assert ring.lines() == ["head 6072 tail 0", "overwritten"]
    data.write_event(0, A)
    # 6072 is 1976 beyond the end: type, misc and size, then the raw size.
    written = b"\x09\0\0\0\x01\0\x18\0\x0c\0\0\0"
    assert ue.process.load(ring.address + PAGE + 1976, 12).data == written


@case(
    "perf.no_records_page",
    spec="kernel/events/ring_buffer.c:rb_alloc",
    doc=f"{PERF_DOC}:perf_event_mmap_page",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_no_records_page(ue: UserEvents) -> None:
    """A ring of its first page alone takes no samples, and the event counts all the same."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    ring = event.map(1)
    assert data.write_event(0, A).value == 8
    assert ue.process.load(ring.address + 1024, 8).data == bytes(8)
    assert event.count == 1


@case(
    "perf.mapped_later",
    spec="kernel/events/core.c:perf_output_begin",
    doc=f"{PERF_DOC}:perf_event_mmap_page",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_mapped_later(ue: UserEvents) -> None:
    """What was written before the ring was mapped is counted, and not found in it."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    data.write_event(0, A)
    ring = event.map()
    data.write_event(0, b"\x42\0\0\0")
    assert ring.lines() == ["head 24 tail 0", B_SAMPLE]
    assert event.count == 2


# Counting


@case(
    "perf.enabled_later",
    spec="kernel/events/core.c:_perf_event_enable",
    doc=f"{PERF_DOC}: disabled, PERF_EVENT_IOC_ENABLE and _DISABLE",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_enabled_later(ue: UserEvents) -> None:
    """An event of perf counts from enable to disable; before and behind, writes succeed unseen."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name(), Wish(disabled=True))
    ring = event.map()
    # perf listens, so it is no EBADF, though nobody takes the record.
    assert data.write_event(0, A).value == 8
    assert event.enable().value == 0
    assert data.write_event(0, b"\x42\0\0\0").value == 8
    assert event.disable().value == 0
    assert data.write_event(0, A).value == 8
    assert ring.records() == [B_SAMPLE]
    assert event.count == 1


@case(
    "perf.count",
    spec="kernel/events/core.c:perf_read_one",
    doc=f"{PERF_DOC}: read(2) gives the number in 8 bytes; PERF_EVENT_IOC_RESET makes it 0",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_count(ue: UserEvents) -> None:
    """read(2) gives how many records there were in 8 bytes, ENOSPC for fewer; RESET makes it 0."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name(), COUNTING)
    assert event.read().data == bytes(8)
    for _ in range(3):
        data.write_event(0, A)
    assert event.read(64).data == b"\x03\0\0\0\0\0\0\0"
    assert event.read(7).errno == "ENOSPC"
    assert event.reset().value == 0
    assert event.count == 0
    data.write_event(0, A)
    assert event.count == 1


@case(
    "perf.unknown_ioctl",
    spec="kernel/events/core.c:_perf_ioctl",
    doc=f"{PERF_DOC}: the numbers of perf's ioctl",
    profiles=PROFILES,
    facilities=("perf",),
)
@variants("number", {"register": 0xC0082A00, "delete": 0x40082A01})
def test_unknown_ioctl(ue: UserEvents, number: int) -> None:
    """The requests of user_events are ENOTTY to an event of perf."""
    ue.open_data().register(ue.name())
    assert listen(ue.process, ue.name()).ioctl(number).errno == "ENOTTY"


@case(
    "perf.exclude_kernel",
    spec="kernel/events/core.c:perf_tp_event_match",
    doc=f"{PERF_DOC}: exclude_kernel: nothing that happens in the kernel",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_exclude_kernel(ue: UserEvents) -> None:
    """A write is of the kernel: an event without the kernel listens and counts none."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name(), Wish(exclude_kernel=True))
    assert data.write_event(0, A).value == 8
    assert event.count == 0


# Whose records


@case(
    "perf.other_process",
    spec=SINK,
    doc=WRITING,
    profiles=PROFILES,
    needs=(*PERF, "dynamic_fields_validated"),
    facilities=("perf",),
)
def test_other_process(ue: UserEvents) -> None:
    """perf follows the process it was asked for: records of others are neither seen nor checked."""
    data = ue.open_data()
    data.register(ue.name() + " __rel_loc char[] s")
    tool = ue.new_process()
    theirs = tool.open_data()
    theirs.register(ue.name() + " __rel_loc char[] s")
    event = listen(tool, ue.name())
    # Beyond the end of the payload.
    invalid = b"\0\0\xff\xff"
    assert data.write_event(0, invalid).value == 8
    assert event.count == 0
    assert theirs.write_event(0, invalid).errno == "EFAULT"
    assert theirs.write_event(0, bytes(4)).value == 8
    assert event.count == 1


@case(
    "perf.inherit",
    spec="kernel/events/core.c:inherit_event",
    doc=f"{PERF_DOC}: inherit: children that are forked later are counted too",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants("inherit, count", {"yes": (True, 3), "no": (False, 1)})
def test_inherit(ue: UserEvents, inherit: bool, count: int) -> None:
    """Children count for their parent's event if it is inherited, also once they are gone."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    before = ue.fork(ue.process)
    event = listen(ue.process, ue.name(), Wish(inherit=inherit))
    child = ue.fork(ue.process)
    # One from before, two from the child, one of its own.
    assert data.of(before).write_event(0, A).value == 8
    assert data.of(child).write_event(0, A).value == 8
    assert data.of(child).write_event(0, A).value == 8
    assert data.write_event(0, A).value == 8
    assert event.count == count
    child.exit()
    assert event.count == count


@case(
    "perf.processor",
    spec="kernel/events/core.c:find_get_context",
    doc=f"{PERF_DOC}: an event follows a process, or a processor",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants("pid, count", {"all": (-1, 2), "one": (0, 1)})
def test_processor(ue: UserEvents, pid: int, count: int) -> None:
    """An event of a processor follows all who write there, or the one it was asked for."""
    other = ue.new_process()
    ue.process.pin(0)
    other.pin(0)
    mine, theirs = ue.open_data(), other.open_data()
    mine.register(ue.name() + " u32 a")
    theirs.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name(), pid=pid, cpu=0)
    ring = event.map()
    assert theirs.write_event(0, A).value == 8
    assert mine.write_event(0, b"\x42\0\0\0").value == 8
    assert ring.records() == [A_SAMPLE, B_SAMPLE][-count:]
    assert event.count == count


# Filters


@case(
    "perf.filter",
    spec="trace_events_filter.c:ftrace_profile_set_filter",
    doc="Documentation/trace/events.rst@v6.12: Event filtering: field, operator, value",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants(
    "text, count",
    {
        "equal": ("a == 66", 1),
        "unequal": ("a != 66", 2),
        "greater": ("a > 65", 2),
        # As the field is signed.
        "negative": ("b < 0", 1),
        "none": ("a == 0", 0),
    },
)
def test_filter(ue: UserEvents, text: str, count: int) -> None:
    """With a filter of numbers only records that pass it are sampled and counted."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a; s16 b")
    event = listen(ue.process, ue.name(), Wish(sample_type=PERIOD))
    ring = event.map()
    assert event.set_filter(text).value == 0
    for payload in (b"\x41\0\0\0\0\0", b"\x42\0\0\0\xff\xff", b"\x43\0\0\0\1\0"):
        assert data.write_event(0, payload).value == 10
    assert ring.records() == ["SAMPLE misc 1 size 16 period 1"] * count
    assert event.count == count


@case(
    "perf.filter_string",
    spec="trace_events_filter.c:parse_pred",
    doc="Documentation/trace/events.rst@v6.12: Event filtering: strings with ==, != and ~",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
@variants(
    "fields, payloads",
    {
        "char": (" char[4] s", [b"hi\0\0", b"ho\0\0"]),
        "rel_loc": (" __rel_loc char[] s", [b"\0\0\3\0hi\0", b"\0\0\3\0ho\0"]),
        "data_loc": (" __data_loc char[] s", [b"\x0c\0\3\0hi\0", b"\x0c\0\3\0ho\0"]),
    },
)
def test_filter_string(ue: UserEvents, fields: str, payloads: list[bytes]) -> None:
    """Strings can be filtered since 6.4; before, no field was a string to a filter: EINVAL."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    event = listen(ue.process, ue.name())
    errno = ue.dated("remote_enable", since="", before="EINVAL")
    assert event.set_filter('s == "ho"').errno == errno
    for payload in payloads:
        data.write_event(0, payload)
    assert event.count == ue.dated("remote_enable", since=1, before=2)


@case(
    "perf.filter_refused",
    spec="trace_events_filter.c:ftrace_profile_set_filter",
    doc="Documentation/trace/events.rst@v6.12: Event filtering",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_filter_refused(ue: UserEvents) -> None:
    """A filter on a field that is not there is EINVAL, one out of reach EFAULT, a second EEXIST."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    assert event.set_filter("b == 1").errno == "EINVAL"
    assert event.set_filter('a == "x"').errno == "EINVAL"
    assert event.ioctl(0x40082406, 0).errno == "EFAULT"
    # The refused ones left none.
    data.write_event(0, A)
    assert event.count == 1
    assert event.set_filter("a == 1").value == 0
    assert event.set_filter("a == 65").errno == "EEXIST"
    assert event.set_filter("b == 1").errno == "EEXIST"
    data.write_event(0, A)
    assert event.count == 1


# What cannot be recorded


@case(
    "perf.invalid",
    spec="trace_events_user.c:user_event_validate",
    doc=f"{RST}: silent about what is checked",
    profiles=PROFILES,
    needs=(*PERF, "dynamic_fields_validated"),
    facilities=("perf",),
)
@variants(
    "fields, payload",
    {
        "rel_loc.end": (" __rel_loc char[] s", b"\0\0\1\0"),
        "rel_loc.nul": (" __rel_loc char[] s", b"\0\0\2\0hi"),
        "data_loc.end": (" __data_loc u8[] s", b"\x0c\0\1\0"),
    },
)
def test_invalid(ue: UserEvents, fields: str, payload: bytes) -> None:
    """Dynamic data out of bounds or without NUL are EFAULT to perf alone, and not counted."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    event = listen(ue.process, ue.name())
    ring = event.map()
    assert data.write_event(0, payload).errno == "EFAULT"
    assert ring.lines() == ["head 0 tail 0"]
    assert event.count == 0
    # The right to record was given back: the next one is sampled.
    assert data.write_event(0, b"\0\0\1\0\0").ok
    assert event.count == 1


@case(
    "perf.unreadable",
    spec=f"{CORE}: fault_in_iov_iter_readable",
    doc=f"{RST}: silent about payloads that cannot be read",
    profiles=PROFILES,
    needs=(*PERF, "unreadable_payload_refused"),
    facilities=("perf",),
)
@variants("readable", {"none": 0, "half": 2})
def test_unreadable(ue: UserEvents, readable: int) -> None:
    """A payload that cannot be read is EFAULT when perf alone listens, counting or not."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    address = ue.process.map() + PAGE - 4 - readable
    ue.process.store(address, bytes(4 + readable))
    assert data.write_at(address, 8).errno == "EFAULT"
    event.disable()
    assert data.write_at(address, 8).errno == "EFAULT"
    assert event.count == 0


@case(
    "perf.short",
    spec=CORE,
    doc=f"{RST}: Writing Data: the payload holds the fields of the event",
    profiles=PROFILES,
    needs=(*PERF, "payload_size_checked"),
    facilities=("perf",),
)
def test_short(ue: UserEvents) -> None:
    """A payload shorter than the fields is EINVAL and gets to perf as little as to others."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    assert data.write_event(0, b"\x41\0\0").errno == "EINVAL"
    assert event.count == 0


@case(
    "perf.longest",
    spec="trace_event_perf.c:perf_trace_buf_alloc",
    doc=f"{RST}: silent about the longest payload",
    profiles=PROFILES,
    needs=(*PERF, "long_records_kept"),
    facilities=("perf",),
)
@variants(
    "length, traced, size",
    {"8184": (8184, 0, 8208), "4065": (4065, 0, 4088), "4064": (4064, 1, 4088)},
)
def test_longest(ue: UserEvents, length: int, traced: int, size: int) -> None:
    """perf takes 8184 bytes of payload, where ftrace drops what is beyond 4064; both are silent."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    ring = event.map(5)
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, A + b"\xee" * (length - 4)).value == 4 + length
    (record,) = ring.records()
    assert record.startswith(f"SAMPLE misc 1 size {size} raw {size - 12}: 41 00 00 00 ee")
    # A dump of more than a page is left out.
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="")] * traced
    assert event.count == 1


@case(
    "perf.dropped_by_ftrace",
    spec=SINK,
    doc=f"{RST}: silent about two listeners",
    profiles=PROFILES,
    needs=(*PERF, "long_records_kept"),
    isolation="global",
    facilities=("perf",),
)
@variants("tracing, length", {"too_long": (1, 4065), "tracing_off": (0, 13)})
def test_dropped_by_ftrace(ue: UserEvents, tracing: int, length: int) -> None:
    """What ftrace drops unseen perf still checks: the write fails although ftrace was content."""
    data = ue.open_data()
    data.register(ue.name() + " __rel_loc char[] s")
    ue.tracefs.enable(ue.name())
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", f"{tracing}\n")
    invalid = b"\0\0\xff\xff".ljust(length, b"\0")
    assert data.write_event(0, invalid).value == 4 + length
    event = listen(ue.process, ue.name())
    assert data.write_event(0, invalid).errno == "EFAULT"
    assert event.count == 0
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "1\n")


@case(
    "perf.dropped_by_perf",
    spec=SINK,
    doc=f"{RST}: silent about two listeners",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_dropped_by_perf(ue: UserEvents) -> None:
    """A record that perf has no room for, or that its filter holds back, still gets to ftrace."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    full, filtered = listen(ue.process, ue.name()), listen(ue.process, ue.name())
    ring = full.map(1)
    filtered.set_filter("a == 1")
    assert data.write_event(0, A).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]
    assert (full.count, filtered.count) == (1, 0)
    assert ue.process.load(ring.address + 1024, 8).data == bytes(8)
