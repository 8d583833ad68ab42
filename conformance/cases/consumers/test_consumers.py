"""perf and trace-cmd: attach to user events, record them, and print their fields."""

import struct

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.consumers import PERF, PERF_OPENED, PERF_STAT, TRACE_CMD, Consumer
from conformance.cases.support.status_text import used_by
from conformance.client.programs import Programs

SPEC = "user_event_create_print_fmt"
DOC = "Overview: user processes create events that existing tools such as ftrace and perf show"
case = surface("consumers", SPEC, DOC, level="contract", tier="full")

# Every kind of field, a payload, and how both programs print it.  libtraceevent, which both use,
# prints negative s8 and s16 without their sign.
FIELDS = {
    "fields": (
        "u8 a; u16 b; u32 c; u64 d; s8 e; s16 f; s32 g; s64 h; unsigned int i; char j; char[8] k; "
        "struct point l 8; __data_loc char[] m; __rel_loc char[] n",
        struct.pack("<BHIQbhiq", 254, 0xFFFE, 0xFFFFFFFE, (1 << 64) - 2, 127, 32767, -2, -3)
        + struct.pack("<IB8s8s", 7, 65, b"abc\0defg", b"\1")
        + struct.pack("<HHHH6s", 67, 3, 3, 3, b"xy\0zz\0"),
        " a=254 b=65534 c=4294967294 d=18446744073709551614 e=127 f=32767 g=-2 h=-3"
        " i=7 j=65 k=abc l=1 m=xy n=zz",
    ),
    "none": ("", b"", ""),
}


def recorded(ue: UserEvents, consumer: Consumer, fields: str, payload: bytes, shown: str) -> str:
    """What a program reports of an event that was written twice, and once more after its end."""
    programs = Programs(ue, ue.process)
    event = ue.event(fields)
    consumer.start(programs, event.name)
    event.write(payload)
    event.write(payload)
    consumer.stop(programs, event.name)
    event.write(payload)
    return consumer.shows(programs, shown)


@case(programs="perf", facilities="perf")
@variants(FIELDS)
def test_perf_record(ue: UserEvents, fields: str, payload: bytes, shown: str) -> None:
    """`perf record` gets each record once, with its writer; `perf script` prints the fields."""
    line = "WRITER " + ue.name() + ":" + shown + "\n"
    times = 2 if fields else ue.dated("empty_payload", since=2, before=0)
    assert recorded(ue, PERF, fields, payload, line * times) == line * times


@case(programs="trace-cmd", isolation="global")
@variants(FIELDS)
def test_trace_cmd_record(ue: UserEvents, fields: str, payload: bytes, shown: str) -> None:
    """`trace-cmd record` gets each record once, with its writer; `report` prints the fields."""
    line = "WRITER " + ue.name() + ":" + shown + "\n"
    times = 2 if fields else ue.dated("empty_payload", since=2, before=0)
    assert recorded(ue, TRACE_CMD, fields, payload, line * times) == line * times


def attached(ue: UserEvents, consumer: Consumer) -> list[tuple[int, str]]:
    """Enable word and status before, during and after a program."""
    programs = Programs(ue, ue.process)
    event = ue.event(bit=3)
    seen = [(event.word.value, used_by(ue))]
    consumer.start(programs, event.name)
    seen.append((event.word.value, used_by(ue)))
    consumer.stop(programs, event.name)
    return [*seen, (event.word.value, used_by(ue))]


ATTACHES = "Status: the bit is updated as tools attach to the event and detach from it"


@case(spec="update_enable_bit_for", profiles="6.4..", programs="perf", facilities="perf")
@doc(ATTACHES)
@variants({"record": PERF, "stat": PERF_STAT})
def test_perf_attaches(ue: UserEvents, consumer: Consumer) -> None:
    """The bit is set while `perf record` or `perf stat` runs."""
    assert attached(ue, consumer) == [(0, ""), (8, "perf"), (0, "")]


@case(spec="update_enable_bit_for", profiles="6.4..", programs="trace-cmd", isolation="global")
@doc(ATTACHES)
def test_trace_cmd_attaches(ue: UserEvents) -> None:
    """The bit is set while `trace-cmd record` runs."""
    assert attached(ue, TRACE_CMD) == [(0, ""), (8, "ftrace"), (0, "")]


MANY = "Overview: existing tools such as ftrace and perf show events; silent about lost records"


def many(ue: UserEvents, consumer: Consumer, prints: str) -> str:
    """What a program reports of 500 records, of which its filter drops 100."""
    programs = Programs(ue, ue.process)
    event = ue.event("u32 a")
    consumer.start(programs, event.name, "a >= 100")
    for number in range(500):
        event.write(struct.pack("<I", number))
    consumer.stop(programs, event.name)
    return consumer.shows(programs, prints)


@case(programs="perf", facilities="perf", spec="user_event_perf", level="behaviour")
@doc(MANY)
def test_perf_many(ue: UserEvents) -> None:
    """`perf record --filter` gets the records that match in order, and loses none."""
    lines = "".join(f"WRITER {ue.name()}: a={number}\n" for number in range(100, 500))
    assert many(ue, PERF, lines) == lines


@case(programs="trace-cmd", isolation="global", spec="user_event_ftrace", level="behaviour")
@doc(MANY)
def test_trace_cmd_many(ue: UserEvents) -> None:
    """`trace-cmd record -f` gets the records that match in order, and loses none."""
    lines = "".join(f"WRITER {ue.name()}: a={number}\n" for number in range(100, 500))
    assert many(ue, TRACE_CMD, lines) == lines


@case(programs="perf", facilities="perf", spec="user_event_perf", level="behaviour")
@doc("Overview: existing tools such as ftrace and perf show events; silent about counts")
def test_perf_stat(ue: UserEvents) -> None:
    """`perf stat` counts the records of all processes."""
    programs = Programs(ue, ue.process)
    event = ue.event("u32 a")
    PERF_STAT.start(programs, event.name)
    event.write(bytes(4))
    child = ue.fork(ue.process)
    event.data.of(child).write_event(event.index, bytes(4))
    event.write(bytes(4))
    PERF_STAT.stop(programs, event.name)
    assert PERF_STAT.shows(programs, "3\n") == "3\n"


@case(programs="perf", facilities="perf", level="behaviour", spec="user_event_perf")
@doc("Status: the bit is updated as tools attach; silent about tools that do not record yet")
def test_perf_opened(ue: UserEvents) -> None:
    """`perf record` sets the bit before it records, and what is written meanwhile is lost."""
    programs = Programs(ue, ue.process)
    event = ue.event("u32 a")
    PERF_OPENED.start(programs, event.name)
    assert event.write(bytes(4)).value == 8
    PERF_OPENED.stop(programs, event.name)
    assert PERF_OPENED.shows(programs, "") == ""
