"""Requests from the review of the first version, taken literally, in the merged ABI.

docs/seeds.md lists these statements, and other cases for them.
"""

from __future__ import annotations

import struct

from conformance.cases.case import surface, variants
from conformance.cases.support.format_text import fields_of
from conformance.client.user_events import UserEvents

case = surface(
    "documented", spec="trace_events_user.c", doc="trace_events_user.c@rfc-v1, the review of it"
)


FOO = " u64 mydata; __data_loc char[] msg"
TEXT = b"Hello world\0"


@case(
    spec="trace_events.c:f_show; trace_events_user.c:user_event_parse_field",
    doc="`foo` with a number of 64 bits and a text shows these offsets and sizes",
    needs="lasting_events",
    isolation="global",
)
def test_listing(ue: UserEvents) -> None:
    """The fields of `foo` are laid out as in the example, if msg is declared as a location."""
    assert ue.tracefs.command("u:foo u64 mydata; char[] msg\n").errno == "EINVAL"
    assert ue.tracefs.command(f"u:foo{FOO}\n").errno == ""
    assert fields_of(ue.tracefs.format("foo")) == [
        "field:u64 mydata; offset:8; size:8; signed:0;",
        "field:__data_loc char[] msg; offset:16; size:4; signed:1;",
    ]


@case(
    spec="user_events_write_core; trace_events_user.c:user_event_validate",
    doc="a packet is number, data, length and offset of the text, and the text; the kernel "
    "checks and mends the offset",
)
@variants(
    # As released: the offset from the start of the record, then the length.
    ("as-released", (20, 12), True),
    # As in the example: the length, then an offset that is neither adjusted nor right.
    ("as-reviewed", (12, 16), False),
    # The same with the halves swapped back: it would have to be adjusted.
    ("as-meant", (16, 12), False),
)
def test_packet(ue: UserEvents, location: tuple[int, int], taken: bool) -> None:
    """The location of the example's text has this offset, which the writer has to know."""
    data = ue.open_data()
    data.register(ue.name() + FOO)
    ue.tracefs.enable(ue.name())
    payload = struct.pack("<QHH", 0xDEADBEEF, *location) + TEXT
    errno = "" if taken else ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert data.write_event(0, payload).errno == errno


@case(
    spec="user_events_write_core",
    doc="the number in front is the ID that `format` shows, such as 1234",
    tier="full",
)
def test_packet_of_an_id(ue: UserEvents) -> None:
    """The number before the data is the descriptor's own index for the event, and no id."""
    data = ue.open_data()
    assert data.register(ue.name() + FOO).index == 0
    ue.tracefs.enable(ue.name())
    payload = struct.pack("<QHH", 0xDEADBEEF, 20, 12) + TEXT
    assert data.write_event(1234, payload).errno == "ENOENT"
    assert data.write_event(0, payload).value == 28


@case(
    spec="user_event_show",
    doc="dynamic_events defines events; their tracers are not to be shown there",
)
def test_definitions_alone(ue: UserEvents) -> None:
    """dynamic_events shows an event as it was defined, enabled or not."""
    ue.open_data().register(ue.name() + FOO)
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u64 mydata; __data_loc char[] msg\n"
    assert ue.tracefs.command(f"u:{ue.name('x')} (Used by ftrace)\n").errno == "EINVAL"
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u64 mydata; __data_loc char[] msg\n"
