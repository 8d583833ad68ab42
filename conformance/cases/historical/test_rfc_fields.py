"""Fields of the first version: type, name, size and offset, separated by tabs.

A field that does not parse is never an error: it and all fields after it are left out.
"""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.format_text import fields_of, print_fmt_of
from conformance.cases.support.rfc_v1 import PATCH
from conformance.client.rfc_v1 import register

DOC = "trace_events_user.c@rfc-v1: too few columns, or a number that is none, is EINVAL"
case = surface("rfc", spec="user_event_parse_field", doc=DOC, level="behaviour", profiles="rfc-v1")


def shown(ue: UserEvents, fields: str) -> list[str]:
    """The fields of a new event in `format`."""
    assert register(ue.open_data(), f"{ue.name()};{fields}").errno == ""
    return fields_of(ue.tracefs.format(ue.name()))


def ends_with(ue: UserEvents, fields: str) -> str:
    """The print fmt of a new event."""
    assert register(ue.open_data(), f"{ue.name()};{fields}").errno == ""
    return print_fmt_of(ue.tracefs.format(ue.name()))


@case(doc="offsets count in what is written; the kernel adds the common fields")
def test_offset_moved(ue: UserEvents) -> None:
    """The example of the patch: payload offsets 0 and 20 are at 8 and 28 of the record."""
    assert shown(ue, "char[]\tmsg\t20\t0;unsigned int\tid\t4\t20;") == [
        "field:char msg[]; offset:8; size:20; signed:1;",
        "field:unsigned int id; offset:28; size:4; signed:0;",
    ]


@case(doc="offsets count in what is written; the kernel adds the common fields")
def test_offset_anywhere(ue: UserEvents) -> None:
    """Fields lie at the given offsets, in any order, with gaps, and overlapping."""
    assert shown(ue, "u8\tc\t1\t100;u32\ta\t4\t0;u16\tb\t2\t2") == [
        "field:u8 c; offset:108; size:1; signed:0;",
        "field:u32 a; offset:8; size:4; signed:0;",
        "field:u16 b; offset:10; size:2; signed:0;",
    ]


@case(doc=f"{PATCH}: a field is a type, a name, a size and an offset, with tabs between")
@variants(
    ("unknown", "bogus type\tq\t3\t0", "field:bogus type q; offset:8; size:3; signed:1;"),
    ("wrong-size", "u64\tq\t1\t0", "field:u64 q; offset:8; size:1; signed:0;"),
    (
        "data_loc",
        "__data_loc char[]\tq\t4\t0",
        "field:__data_loc char[] q; offset:8; size:4; signed:1;",
    ),
    ("no-type", "\tq\t4\t0", "field: q; offset:8; size:4; signed:1;"),
    ("no-name", "u32\t\t4\t0", "field:u32 ; offset:8; size:4; signed:0;"),
    ("spaces", "u32 \t q\t4\t0", "field:u32   q; offset:8; size:4; signed:0;"),
)
def test_any_type(ue: UserEvents, fields: str, line: str) -> None:
    """Type and name are any text without tab and semicolon; the size is as given."""
    assert shown(ue, fields) == [line]


@case(spec="user_event_parse_field: type[0] != 'u'")
@doc(f"{PATCH}: a field is a type, a name, a size and an offset, with tabs between")
def test_signed_unless_u(ue: UserEvents) -> None:
    """A field is signed unless its type begins with u."""
    fields = "int\ta\t4\t0;u8\tb\t1\t4;unsigned long\tc\t8\t8;user\td\t1\t16;U8\te\t1\t17"
    assert [line[-2] for line in shown(ue, fields)] == ["1", "0", "0", "0", "1"]


@case(doc="columns after the offset are for later")
@variants({"one": "\tmore", "two": "\tmore\tand more", "empty": "\t", "number": "\t0x"})
def test_columns_for_later(ue: UserEvents, more: str) -> None:
    """Columns after the offset are ignored."""
    assert shown(ue, f"u32\ta\t4\t0{more};u8\tb\t1\t4") == [
        "field:u32 a; offset:8; size:4; signed:0;",
        "field:u8 b; offset:12; size:1; signed:0;",
    ]


@case(doc=f"{PATCH}: a field is a type, a name, a size and an offset, with tabs between")
def test_field_twice(ue: UserEvents) -> None:
    """Two fields of one name are two fields."""
    line = "field:u8 a; offset:8; size:1; signed:0;"
    assert shown(ue, "u8\ta\t1\t0;u8\ta\t1\t0") == [line, line]


@case(spec="user_event_parse_fields; trace_events.c:event_define_fields", level="detail")
@variants(
    ("two", "u32\tb"),
    ("one", "u32"),
    ("spaces-for-tabs", "u32 b 4 4"),
    ("empty", ""),
    ("as-released", "u32 b"),
)
def test_too_few_columns(ue: UserEvents, field: str) -> None:
    """A field of fewer than three columns is no error: it and all after it are left out."""
    assert shown(ue, f"u32\ta\t4\t0;{field};u8\tc\t1\t8") == [
        "field:u32 a; offset:8; size:4; signed:0;"
    ]


@case(level="detail")
@spec("user_event_parse_fields; trace_events.c:event_define_fields; lib/kstrtox.c:kstrtouint")
@variants(
    ("hexadecimal", "0x4"),
    ("empty", ""),
    ("space-before", " 4"),
    ("space-behind", "4 "),
    ("negative", "-1"),
    ("33-bits", "4294967296"),
    ("word", "four"),
)
def test_no_number(ue: UserEvents, number: str) -> None:
    """A size or offset that is no number is no error: the field and all after it are left out."""
    assert shown(ue, f"u32\ta\t4\t0;u32\tb\t{number}\t4;u8\tc\t1\t8") == [
        "field:u32 a; offset:8; size:4; signed:0;"
    ]
    register(ue.open_data(), f"{ue.name('o')};u32\ta\t4\t0;u32\tb\t4\t{number};u8\tc\t1\t8")
    assert fields_of(ue.tracefs.format(ue.name("o"))) == [
        "field:u32 a; offset:8; size:4; signed:0;"
    ]


@case(spec="user_event_parse_field; lib/kstrtox.c:kstrtouint", level="detail")
@doc("offsets count in what is written; the kernel adds the common fields")
@variants(
    ("plus", "+4", "+8", "field:u32 a; offset:16; size:4; signed:0;"),
    ("zero", "0", "0", "field:u32 a; offset:8; size:0; signed:0;"),
    ("leading-zero", "010", "010", "field:u32 a; offset:18; size:10; signed:0;"),
    ("newline", "4\n", "0\n", "field:u32 a; offset:8; size:4; signed:0;"),
    ("largest", "4294967295", "0", "field:u32 a; offset:8; size:4294967295; signed:0;"),
    ("wrapping", "4", "4294967295", "field:u32 a; offset:7; size:4; signed:0;"),
    ("to-zero", "4", "4294967288", "field:u32 a; offset:0; size:4; signed:0;"),
)
def test_numbers(ue: UserEvents, size: str, offset: str, line: str) -> None:
    """Numbers are decimal and have 32 bits, in which an offset sum wraps."""
    assert shown(ue, f"u32\ta\t{size}\t{offset}") == [line]


@case(level="detail")
@doc(f"{PATCH}: a field is a type, a name, a size and an offset, with tabs between;")
@doc("silent of leaving it out")
def test_offset_left_out(ue: UserEvents) -> None:
    """A field without an offset is accepted, and shown like the others."""
    assert register(ue.open_data(), ue.name() + ";u32\ta\t4;u8\tb\t1\t4").errno == ""
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 b;u32 a\n"


@case(spec="user_event_parse_fields; trace_events.c:event_define_fields")
@doc(f"{PATCH}: fields are optional")
@variants({"nothing": "", "semicolon": ";", "semicolons": ";;", "space": "; "})
def test_without_fields(ue: UserEvents, rest: str) -> None:
    """A name alone, whatever is between semicolons after it, is an event without fields."""
    assert register(ue.open_data(), ue.name() + rest).errno == ""
    assert fields_of(ue.tracefs.format(ue.name())) == []
    assert ue.tracefs.definitions() == f"ue:{ue.name()}\n"


@case(doc="silent; a field of type print_fmt sets the event's print_fmt")
@variants(("plain", '"a=%u", REC->a'), ("empty", ""), ("nonsense", "no quotes %s %n"))
def test_print_fmt(ue: UserEvents, text: str) -> None:
    """A field of type print_fmt is no field: its name is the print fmt, unchanged."""
    assert ends_with(ue, f"u32\ta\t4\t0;print_fmt\t{text}\t0;u8\tb\t1\t4") == text
    assert fields_of(ue.tracefs.format(ue.name())) == [
        "field:u32 a; offset:8; size:4; signed:0;",
        "field:u8 b; offset:12; size:1; signed:0;",
    ]
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 b;u32 a\n"


@case(doc="silent; a field of type print_fmt sets the event's print_fmt", level="detail")
def test_print_fmt_twice(ue: UserEvents) -> None:
    """Of two print fmts the last one counts."""
    assert ends_with(ue, 'print_fmt\t"a"\t0;print_fmt\t"b"\t0\t0') == '"b"'


@case(spec="user_event_parse_fields; trace_events.c:event_define_fields", level="detail")
@doc("silent; a field of type print_fmt sets the event's print_fmt")
@variants({"two-columns": 'print_fmt\t"h"', "no-number": 'print_fmt\t"h"\tx'})
def test_print_fmt_unparsed(ue: UserEvents, field: str) -> None:
    """It needs a number after it like any field, or all from there on is left out."""
    assert ends_with(ue, f"{field};u8\tb\t1\t4") == "(null)"
    assert fields_of(ue.tracefs.format(ue.name())) == []


@case(spec="trace_events.c:f_show", level="detail")
@doc("silent; a field of type print_fmt sets the event's print_fmt")
def test_no_print_fmt(ue: UserEvents) -> None:
    """An event without one has no print fmt, which is shown as (null)."""
    register(ue.open_data(), ue.name() + ";u8\ta\t1\t0")
    text = ue.tracefs.format(ue.name())
    assert text.startswith(f"name: {ue.name()}\nID: ")
    assert text.endswith("\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n\nprint fmt: (null)\n")
