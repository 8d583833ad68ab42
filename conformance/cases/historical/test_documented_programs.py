"""The programs of the founding documents, and requests from the review of the first version.

A program checks its status page, since 6.4 its enable word.  docs/seeds.md lists the statements of
the review, and other cases for them.
"""

import os
import struct
from collections.abc import Callable

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.format_text import fields_of
from conformance.cases.support.status_page import map_page
from conformance.client.data_file import Registration

SPEC = "user_events_write_core"
DOC = "Writing Data: the write index is at the start, the payload follows"
case = surface("documented", SPEC, DOC, level="contract", isolation="global")


def asked(ue: UserEvents, opened: int) -> Callable[[Registration], int]:
    """How a program checks whether its event is enabled: it maps the page and closes the file."""
    if not ue.profile.has("status_page"):
        return lambda event: event.word.value
    page = map_page(ue.process, opened=opened)
    page.close()
    return lambda event: page.shows(event.place)


@case(doc="Status, Writing Data: a program writes index and payload if its bit is set")
def test_typical_use(ue: UserEvents) -> None:
    """The typical program finds its event disabled, then enabled, and its writes are recorded."""
    ask = asked(ue, os.O_RDWR)
    data = ue.open_data()
    event = data.register("test")
    assert event.index == 0
    if ue.profile.has("status_page"):
        assert event.place == 1
    assert ask(event) == 0
    ue.tracefs.enable("test")
    assert ask(event) == 1
    assert data.writev([b"\0\0\0\0", b"payload"]).value == 11
    line = ue.dated("remote_enable", since="test:No fields found", before="70 61 79 6c 6f 61 64")
    assert ue.tracefs.records("test") == [line]
    ue.tracefs.disable("test")
    assert ask(event) == 0


@case(spec="user_events_write_core: user_event_find by index", level="detail", profiles="5.18..6.3")
@doc("@v5.18: silent; the program of its proposal writes the status index")
def test_sample_program(ue: UserEvents) -> None:
    """The proposed sample program records nothing: it writes its status index, ENOENT."""
    ask = asked(ue, os.O_RDONLY)
    data = ue.open_data()
    event = data.register("test u32 count")
    assert (event.place, event.index) == (1, 0)
    assert ask(event) == 0
    ue.tracefs.enable("test")
    assert ask(event) == 1
    # The program does not check the result, and continues counting.
    assert data.writev([b"\1\0\0\0", b"\0\0\0\0"]).errno == "ENOENT"
    assert data.writev([b"\1\0\0\0", b"\1\0\0\0"]).errno == "ENOENT"
    assert ue.tracefs.records("test") == []


@case(level="detail", profiles="5.18..6.3", needs="payload_size_checked", tier="full")
@spec("user_events_write_core: user_event_find by index")
@doc("@v5.18: silent; the program of its proposal writes the status index")
def test_sample_program_of_two(ue: UserEvents) -> None:
    """A status index used as a write index may select another event."""
    data = ue.open_data()
    first = data.register("test u32 count")
    second = data.register("other u64 sum")
    assert (first.place, second.index) == (1, 1)
    ue.tracefs.enable("test")
    ue.tracefs.enable("other")
    assert data.writev([b"\1\0\0\0", b"\0\0\0\0"]).errno == "EINVAL"
    assert data.writev([b"\1\0\0\0", b"\0\0\0\0\1\0\0\0"]).value == 12
    assert ue.tracefs.records("other") == ["00 00 00 00 01 00 00 00"]


@case
def test_sample_program_mended(ue: UserEvents) -> None:
    """With the write index the sample program records its counter while the event is enabled."""
    ask = asked(ue, os.O_RDONLY)
    data = ue.open_data()
    event = data.register("test u32 count")
    count = 0
    answers = []
    for switch in (ue.tracefs.enable, ue.tracefs.enable, ue.tracefs.disable, ue.tracefs.enable):
        switch("test")
        answers.append(ask(event))
        if answers[-1]:
            assert data.writev([b"\0\0\0\0", bytes([count, 0, 0, 0])]).value == 8
            count += 1
    assert answers == [1, 1, 0, 1]
    assert ue.tracefs.records("test") == ue.dated(
        "remote_enable",
        since=["test: count=0x0 (0)", "test: count=0x1 (1)", "test: count=0x2 (2)"],
        before=["00 00 00 00", "01 00 00 00", "02 00 00 00"],
    )


FOO = " u64 mydata; __data_loc char[] msg"
TEXT = b"Hello world\0"


@case(level="detail", needs="lasting_events")
@doc("trace_events_user.c@rfc-v1, the review of it:")
@doc("`foo` with a number of 64 bits and a text shows these offsets and sizes")
@spec("trace_events.c:f_show; trace_events_user.c:user_event_parse_field")
def test_listing(ue: UserEvents) -> None:
    """The fields of `foo` are laid out as in the example, if msg is declared as a location."""
    assert ue.tracefs.command("u:foo u64 mydata; char[] msg\n").errno == "EINVAL"
    assert ue.tracefs.command(f"u:foo{FOO}\n").errno == ""
    assert fields_of(ue.tracefs.format("foo")) == [
        "field:u64 mydata; offset:8; size:8; signed:0;",
        "field:__data_loc char[] msg; offset:16; size:4; signed:1;",
    ]


@case(level="behaviour", isolation="events")
@doc("Writing Data: silent about dynamic fields;")
@doc("in the review of the first version offsets are corrected")
@spec("user_events_write_core; trace_events_user.c:user_event_validate")
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
    data = ue.register(ue.name() + FOO)
    ue.tracefs.enable(ue.name())
    payload = struct.pack("<QHH", 0xDEADBEEF, *location) + TEXT
    errno = "" if taken else ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert data.write_event(0, payload).errno == errno


@case(tier="full", isolation="events")
@doc("Registering, Writing Data: write_index represents the event, and is at the start of the data")
def test_packet_of_an_id(ue: UserEvents) -> None:
    """The number before the data is the descriptor's own index for the event, and no id."""
    data = ue.open_data()
    assert data.register(ue.name() + FOO).index == 0
    ue.tracefs.enable(ue.name())
    payload = struct.pack("<QHH", 0xDEADBEEF, 20, 12) + TEXT
    assert data.write_event(1234, payload).errno == "ENOENT"
    assert data.write_event(0, payload).value == 28


@case(spec="user_event_show", level="behaviour", isolation="events")
@doc("Overview: silent about what dynamic_events shows; in the review, no tracers")
def test_definitions_alone(ue: UserEvents) -> None:
    """dynamic_events shows an event as it was defined, enabled or not."""
    ue.open_data().register(ue.name() + FOO)
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u64 mydata; __data_loc char[] msg\n"
    assert ue.tracefs.command(f"u:{ue.name('x')} (Used by ftrace)\n").errno == "EINVAL"
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u64 mydata; __data_loc char[] msg\n"
