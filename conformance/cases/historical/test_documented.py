"""The examples of the founding documents of user_events, taken literally.

These are the message of the first commit and the documentation that was proposed with it, of which
the first release has a later edition.  docs/seeds.md lists their statements.  Events have the names
of the examples where the text that shows them is compared.
"""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.format_text import fields_of
from conformance.cases.support.status_text import without_maximum

case = surface("documented", level="behaviour")


@case(spec="user_event_create", needs="lasting_events", isolation="global")
@doc("Overview: silent about what dynamic_events shows; the first commit shows `u:test`")
def test_created(ue: UserEvents) -> None:
    """The line appended to dynamic_events is the line that it lists."""
    assert ue.tracefs.command("u:test\n").value == 7
    assert ue.tracefs.dynamic_events(whole=True) == "u:test\n"


@case(level="contract", needs="lasting_events", without="two_status_pages", isolation="global")
@spec("user_seq_show")
@doc("Status: the text for one event `test`, unused and used by ftrace")
def test_status(ue: UserEvents) -> None:
    """The status of one event, enabled and disabled, is the documented text to the byte."""
    used = {
        "byte-status": "1:test # Used by ftrace\n\nActive: 1\nBusy: 1\nMax: 4096\n",
        "bit-status": "1:test # Used by ftrace\n\nActive: 1\nBusy: 1\nMax: 32768\n",
        "remote-enable": "test # Used by ftrace\n\nActive: 1\nBusy: 1\n",
    }
    unused = {
        "byte-status": "1:test\n\nActive: 1\nBusy: 0\nMax: 4096\n",
        "bit-status": "1:test\n\nActive: 1\nBusy: 0\nMax: 32768\n",
        "remote-enable": "test\n\nActive: 1\nBusy: 0\n",
    }
    ue.tracefs.command("u:test\n")
    assert ue.tracefs.status(whole=True) == unused[ue.profile.generation]
    ue.tracefs.enable("test")
    assert ue.tracefs.status(whole=True) == used[ue.profile.generation]
    ue.tracefs.disable("test")
    assert ue.tracefs.status(whole=True) == unused[ue.profile.generation]


@case(needs="lasting_events payload_size_checked", isolation="global")
@spec("user_event_create, user_event_show")
@doc("Field Format: char[20] is a type; silent about what dynamic_events shows")
def test_char_array(ue: UserEvents) -> None:
    """The array of the example is listed as it was created, and takes 20 bytes."""
    ue.tracefs.command("u:detailed char[20] msg\n")
    assert ue.tracefs.dynamic_events(whole=True) == "u:detailed char[20] msg\n"
    data = ue.register("detailed char[20] msg")
    ue.tracefs.enable("detailed")
    assert data.write_event(0, b"twenty characters..").errno == "EINVAL"
    assert data.write_event(0, b"twenty characters...").value == 24
    dump = "74 77 65 6e 74 79 20 63 68 61 72 61 63 74 65 72 73 2e 2e 2e"
    line = ue.dated("remote_enable", since="detailed: msg=twenty characters...", before=dump)
    assert ue.tracefs.records("detailed") == [line]


@case(level="contract", needs="lasting_events", tier="full", isolation="global")
@spec("user_event_parse; trace_events_user.c:user_event_create")
@doc("Overview: a command has the format of the ioctl with the prefix u:")
@variants(
    ("struct", "test struct mytype myname 20"),
    ("nothing", "test"),
    ("count", "test u32 count"),
    ("two", "test u32 src; u32 dst"),
)
def test_both_ways(ue: UserEvents, definition: str) -> None:
    """The ioctl takes a definition of dynamic_events, without its prefix, as the same event."""
    data = ue.open_data()
    ue.tracefs.command(f"u:{definition}\n")
    assert ue.tracefs.dynamic_events(whole=True) == f"u:{definition}\n"
    assert data.delete("test").value == 0
    assert data.register(definition).index == 0
    assert ue.tracefs.dynamic_events(whole=True) == f"u:{definition}\n"
    assert without_maximum(ue, ue.tracefs.status(whole=True)) == (
        ue.status_line(1, "test") + "\nActive: 1\nBusy: 0\n"
    )


@case(spec="user_field_size", level="contract")
@doc("Field Format: basic types are __data_loc, u32, u64, int, char and char[20]")
def test_basic_types(ue: UserEvents) -> None:
    """All named basic types can be used in one event."""
    fields = "__data_loc char[] a; u32 b; u64 c; int d; char e; char[20] f"
    assert ue.open_data().register(f"{ue.name()} {fields}").errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} {fields}\n"
    assert fields_of(ue.tracefs.format(ue.name())) == [
        "field:__data_loc char[] a; offset:8; size:4; signed:1;",
        "field:u32 b; offset:12; size:4; signed:0;",
        "field:u64 c; offset:16; size:8; signed:0;",
        "field:int d; offset:24; size:4; signed:1;",
        "field:char e; offset:28; size:1; signed:1;",
        "field:char f[]; offset:29; size:20; signed:1;",
    ]


@case(spec="user_event_parse_field", needs="payload_size_checked")
@doc("Field Format: the field of a struct of 20 bytes is `struct mytype myname 20`;")
@doc("silent about the rest")
def test_struct(ue: UserEvents) -> None:
    """The struct of the example has 20 bytes, as `format` shows."""
    event = ue.event("struct mytype myname 20", enabled=True)
    (field,) = fields_of(ue.tracefs.format(ue.name()))
    assert field == "field:struct mytype myname; offset:8; size:20; signed:1;"
    assert event.write(b"x" * 19).errno == "EINVAL"
    assert event.write(b"x" * 20).value == 24
    dump = "78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78 78"
    assert ue.tracefs.records() == [ue.line("myname=<INVALID-SIZE>", dump=dump)]


@case(spec="user_event_parse", needs="lasting_events", tier="full", isolation="global")
@doc("Command Format: flags follow the colon, none is supported yet; silent about the error")
def test_bpf_iter(ue: UserEvents) -> None:
    """The flag BPF_ITER is ignored like any other flag, and rejected since 6.4."""
    errno = ue.dated("text_flags_refused", since="EINVAL", before="")
    shown = ue.dated("text_flags_refused", since="", before="u:test u32 count\n")
    assert ue.tracefs.command("u:test:BPF_ITER u32 count\n").errno == errno
    assert ue.tracefs.dynamic_events(whole=True) == shown
    assert ue.open_data().register("test:BPF_ITER u32 count").errno == errno
    assert ue.tracefs.dynamic_events(whole=True) == shown


@case(spec="user_event_validate")
@doc("Writing Data: silent about dynamic fields;")
@doc("in the first commit __rel_loc counts from its entry")
def test_rel_loc(ue: UserEvents) -> None:
    """Data right after the entry is at 0 of a __rel_loc, and at 12 of a __data_loc."""
    data = ue.register(rel="__rel_loc char[] msg", data="__data_loc char[] msg")
    ue.enable("rel", "data")
    assert data.write_event(0, b"\x00\0\6\0hello\0").value == 14
    assert data.write_event(1, b"\x0c\0\6\0hello\0").value == 14
    assert ue.tracefs.records() == [
        ue.line("msg=hello", dump="00 00 06 00 68 65 6c 6c 6f 00", name="rel"),
        ue.line("msg=hello", dump="0c 00 06 00 68 65 6c 6c 6f 00", name="data"),
    ]


@case(spec="user_event_ftrace: the payload is copied as it is", tier="full")
@doc("Writing Data: silent about dynamic fields; the first commit updates their offsets")
def test_data_loc_not_updated(ue: UserEvents) -> None:
    """The offset in a __data_loc is not adjusted: offset 8 shows the location itself."""
    assert ue.event("__data_loc u8[] msg", enabled=True).write(b"\x08\0\4\0hello\0").value == 14
    dump = "08 00 04 00 68 65 6c 6c 6f 00"
    assert ue.tracefs.records() == [ue.line("msg=08,00,04,00", dump=dump)]


@case(spec="user_events_write_core", level="contract", tier="full")
@doc("Writing Data: an int for the event of index 1 are 8 bytes, and the index is not in the trace")
def test_int_payload(ue: UserEvents) -> None:
    """For index 1 and an int, 8 bytes are written, of which the last 4 are recorded."""
    data = ue.event("int payload", "first").data
    assert data.register(ue.name() + " int payload").index == 1
    ue.tracefs.enable(ue.name())
    assert data.write(b"\1\0\0\0\x2a\0\0\0").value == 8
    assert ue.tracefs.records() == [ue.line("payload=0x2a (42)", dump="2a 00 00 00")]


@case(spec="user_events_write_iter", level="contract")
@doc("Writing Data: a struct of three ints follows the index in a writev of two vectors")
def test_three_ints(ue: UserEvents) -> None:
    """A struct of three ints is written by writev of two segments, and by write as well."""
    event = ue.event("int src; int dst; int flags")
    assert event.index == 0
    event.enable()
    payload = b"\1\0\0\0\2\0\0\0\3\0\0\0"
    assert event.data.writev([b"\0\0\0\0", payload]).value == 16
    assert event.data.write(b"\0\0\0\0" + payload).value == 16
    line = ue.line(
        "src=0x1 (1)", "dst=0x2 (2)", "flags=0x3 (3)", dump="01 00 00 00 02 00 00 00 03 00 00 00"
    )
    assert ue.tracefs.records() == [line, line]
