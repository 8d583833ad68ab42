"""perf and trace-cmd record user events, and print their fields."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.consumers import PERF, TRACE_CMD, Consumer
from conformance.client.programs import Programs
from conformance.client.user_events import UserEvents

case = surface(
    "consumers",
    spec="user_event_create_print_fmt",
    doc="Overview: events can be viewed with existing tools such as ftrace and perf",
    tier="full",
)

# Fields, a payload, and how both programs print it.  Of bytes and halves libtraceevent prints %d
# without their sign, see docs/behaviours.md.
FIELDS = {
    "u8": ("u8 a", b"\xfe", " a=254"),
    "u16": ("u16 a", b"\xfe\xff", " a=65534"),
    "u32": ("u32 a", b"\xfe\xff\xff\xff", " a=4294967294"),
    "u64": ("u64 a", b"\xfe" + b"\xff" * 7, " a=18446744073709551614"),
    "s8": ("s8 a", b"\x7f", " a=127"),
    "s16": ("s16 a", b"\xff\x7f", " a=32767"),
    "s32": ("s32 a", b"\xfe\xff\xff\xff", " a=-2"),
    "s64": ("s64 a", b"\xfe" + b"\xff" * 7, " a=-2"),
    "c_types": ("unsigned int a; char b; int c", b"\7\0\0\0\x41" + b"\xff" * 4, " a=7 b=65 c=-1"),
    "array": ("char[8] a; u8 b", b"abc\0defg\3", " a=abc b=3"),
    "data_loc": ("u8 a; __data_loc char[] b", b"\1\x0d\0\3\0xy\0", " a=1 b=xy"),
    "rel_loc": ("u8 a; __rel_loc char[] b", b"\1\0\0\3\0xy\0", " a=1 b=xy"),
    "struct": ("struct point a 8; u8 b", b"\1\0\0\0\0\0\0\0\5", " a=1 b=5"),
    "none": ("", b"", ""),
}


def recorded(ue: UserEvents, consumer: Consumer, fields: str, payload: bytes, shown: str) -> str:
    """What a program reports of two records of one event."""
    programs = Programs(ue, ue.process)
    event = ue.event(fields)
    consumer.start(programs, event.name)
    event.write(payload)
    event.write(payload)
    consumer.stop(programs, event.name)
    event.write(payload)
    return consumer.shows(programs, shown).text


@case(level="contract", programs="perf", facilities="perf")
@variants(FIELDS)
def test_perf_record(ue: UserEvents, fields: str, payload: bytes, shown: str) -> None:
    """`perf record` gets each record once, with its writer; `perf script` prints the fields."""
    line = "WRITER " + ue.name() + ":" + shown + "\n"
    assert recorded(ue, PERF, fields, payload, line * 2) == line * 2


@case(level="contract", programs="trace-cmd", isolation="global")
@variants(FIELDS)
def test_trace_cmd_record(ue: UserEvents, fields: str, payload: bytes, shown: str) -> None:
    """`trace-cmd record` gets each record once, with its writer; `report` prints the fields."""
    line = "WRITER " + ue.name() + ":" + shown + "\n"
    assert recorded(ue, TRACE_CMD, fields, payload, line * 2) == line * 2
