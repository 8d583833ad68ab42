"""Text of a record in `trace`: how the kernel decodes fields of every type."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.trace_text import recorded

DOC = "silent; events are viewed with ftrace"
case = surface("trace", doc=DOC, level="detail", profiles="6.4..", tier="full")


@case(spec="trace.c:tracing_open")
def test_cleared_by_open(ue: UserEvents) -> None:
    """Opening `trace` for writing with O_TRUNC clears it; a write does nothing."""
    event = ue.event("u8 a", enabled=True)
    event.write(b"\1")
    opened, slot = ue.process.open(ue.tracefs.path("trace"), os.O_WRONLY)
    assert opened.errno == ""
    assert len(ue.tracefs.records()) == 1
    ue.process.close(slot)
    opened, slot = ue.process.open(ue.tracefs.path("trace"), os.O_WRONLY | os.O_TRUNC)
    assert opened.errno == ""
    assert ue.tracefs.records() == []
    event.write(b"\2")
    ue.process.close(slot)
    assert ue.tracefs.records() == [ue.line("a=(2)", dump="02")]


@case(spec="trace_output.c:print_fields: size 1")
@variants({"u8": "u8", "s8": "s8", "char": "char", "uchar": "unsigned char"})
def test_one_byte(ue: UserEvents, type_text: str) -> None:
    """One byte prints as a character if printable, and as an unsigned number."""
    seen = recorded(ue, f"{type_text} a", b"\0", b"A", b" ", b"~", b"\x1f", b"\x7f", b"\xff")
    shown = ["(0)", "'A'(65)", "' '(32)", "'~'(126)", "(31)", "(127)", "'\udcff'(255)"]
    assert seen == [f"{ue.name()}: a={text}" for text in shown]


@case(spec="trace_output.c:print_fields: isprint() knows Latin-1")
def test_printable_bytes(ue: UserEvents) -> None:
    """Bytes from 0xa0 on are printable, those from 0x80 to 0x9f are not."""
    seen = recorded(ue, "u8 a", b"\x80", b"\x9f", b"\xa0", b"\xe9")
    shown = ["(128)", "(159)", "'\udca0'(160)", "'\udce9'(233)"]
    assert seen == [f"{ue.name()}: a={text}" for text in shown]


@case(spec="trace_output.c:print_fields: size 2")
@variants({"u16": "u16", "s16": "s16", "short": "short", "ushort": "unsigned short"})
def test_two_bytes(ue: UserEvents, type_text: str) -> None:
    """Two bytes print in hex and as an unsigned number, whatever their type."""
    seen = recorded(ue, f"{type_text} a", b"\0\0", b"\x34\x12", b"\xff\x7f", b"\xff\xff")
    shown = ["0x0 (0)", "0x1234 (4660)", "0x7fff (32767)", "0xffff (65535)"]
    assert seen == [f"{ue.name()}: a={text}" for text in shown]


@case(spec="trace_output.c:print_fields: size 4")
@variants({"u32": "u32", "s32": "s32", "int": "int", "uint": "unsigned int"})
def test_four_bytes(ue: UserEvents, type_text: str) -> None:
    """Four bytes print in hex and as a signed number, whatever their type."""
    payloads = (b"\0\0\0\0", b"\x78\x56\x34\x12", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\xff" * 4)
    seen = recorded(ue, f"{type_text} a", *payloads)
    shown = [
        "0x0 (0)",
        "0x12345678 (305419896)",
        "0x7fffffff (2147483647)",
        "0x80000000 (-2147483648)",
        "0xffffffff (-1)",
    ]
    assert seen == [f"{ue.name()}: a={text}" for text in shown]


@case(spec="trace_output.c:print_fields: size 8")
@variants("u64", "s64")
def test_eight_bytes(ue: UserEvents, type_text: str) -> None:
    """Eight bytes print in hex and as a signed number, whatever their type."""
    seen = recorded(
        ue,
        f"{type_text} a",
        b"\0\0\0\0\0\0\0\0",
        b"\xef\xcd\xab\x89\x67\x45\x23\x01",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    )
    shown = [
        "0x0 (0)",
        "0x123456789abcdef (81985529216486895)",
        "0x7fffffffffffffff (9223372036854775807)",
    ]
    assert seen == [f"{ue.name()}: a={text}" for text in shown]


@case(spec="trace_output.c:print_fields: size 8", without="long_values_as_symbols")
@doc("silent; events are viewed with ftrace;")
@doc("since 6.15 such a value may print as a symbol of the kernel")
@variants("u64", "s64")
def test_negative_eight_bytes(ue: UserEvents, type_text: str) -> None:
    """Eight bytes with the highest bit set print as a negative number, even of a u64."""
    seen = recorded(ue, f"{type_text} a", b"\xff" * 8, b"\0\0\0\0\0\0\0\x80")
    shown = ["0xffffffffffffffff (-1)", "0x8000000000000000 (-9223372036854775808)"]
    assert seen == [f"{ue.name()}: a={text}" for text in shown]


@case(spec="trace_output.c:print_fields: FILTER_STATIC_STRING", tier="quick")
@variants(
    ("full", "char[4]", b"abcd", "abcd"),
    ("ended", "char[4]", b"ab\0d", "ab"),
    ("empty", "char[4]", b"\0bcd", ""),
    ("one", "char[1]", b"x", "x"),
    ("unsigned", "unsigned char[6]", b"abcdef", "abcdef"),
    ("spaces", "char[4]", b" a  ", " a  "),
    ("percent", "char[8]", b"%s%n%d%x", "%s%n%d%x"),
    ("high_bytes", "char[3]", b"\xc3\xa9\0", "\u00e9"),
    ("hex_length", "char[0x4]", b"abcd", "abcd"),
    ("text_behind", "char[4]x", b"abcd", "abcd"),
)
def test_char_array(ue: UserEvents, type_text: str, payload: bytes, text: str) -> None:
    """An array of characters prints unescaped up to its first NUL or its length."""
    assert recorded(ue, f"{type_text} a", payload) == [f"{ue.name()}: a={text}"]


@case(spec="trace_output.c:print_fields: FILTER_DYN_STRING, FILTER_RDYN_STRING", tier="quick")
@variants(
    ("data_loc", "__data_loc char[]", b"\x0c\0\5\0hell\0", "hell"),
    ("data_loc.unsigned", "__data_loc unsigned char[]", b"\x0c\0\3\0hi\0", "hi"),
    ("data_loc.nul_inside", "__data_loc char[]", b"\x0c\0\6\0ab\0cd\0", "ab"),
    ("data_loc.only_nul", "__data_loc char[]", b"\x0c\0\1\0\0", ""),
    ("rel_loc", "__rel_loc char[]", b"\0\0\5\0hell\0", "hell"),
    ("rel_loc.unsigned", "__rel_loc unsigned char[]", b"\0\0\3\0hi\0", "hi"),
    ("rel_loc.nul_inside", "__rel_loc char[]", b"\0\0\6\0ab\0cd\0", "ab"),
    ("rel_loc.nothing", "__rel_loc char[]", b"\0\0\0\0", ""),
)
def test_dynamic_string(ue: UserEvents, type_text: str, payload: bytes, text: str) -> None:
    """A dynamic string prints from its offset in the record up to its first NUL."""
    assert recorded(ue, f"{type_text} a", payload) == [f"{ue.name()}: a={text}"]


@case(spec="trace_output.c:print_fields: print_array", tier="quick")
@variants(
    ("data_loc", "__data_loc u8[]", b"\x0c\0\4\0\0\x0f\xf0\xff", "00,0f,f0,ff"),
    ("data_loc.one", "__data_loc u8[]", b"\x0d\0\1\0\1\2\3\4", "02"),
    ("data_loc.nothing", "__data_loc u8[]", b"\x0c\0\0\0", ""),
    ("data_loc.words", "__data_loc u32[]", b"\x0c\0\4\0\1\2\3\4", "01,02,03,04"),
    ("data_loc.made_up", "__data_loc stuff", b"\x0c\0\2\0\1\2", "01,02"),
    ("data_loc.own_word", "__data_loc u8[]", b"\x08\0\4\0", "08,00,04,00"),
    ("rel_loc", "__rel_loc u8[]", b"\0\0\4\0\0\x0f\xf0\xff", "00,0f,f0,ff"),
    ("rel_loc.last", "__rel_loc u8[]", b"\3\0\1\0\1\2\3\4", "04"),
    ("rel_loc.nothing", "__rel_loc u8[]", b"\0\0\0\0", ""),
    ("rel_loc.cpumask", "__rel_loc cpumask_t", b"\0\0\2\0\1\2", "01,02"),
)
def test_dynamic_bytes(ue: UserEvents, type_text: str, payload: bytes, text: str) -> None:
    """Dynamic data that is no string prints as hex bytes separated by commas."""
    assert recorded(ue, f"{type_text} a", payload) == [f"{ue.name()}: a={text}"]


@case(spec="trace_output.c:print_fields: print_array")
@variants(
    ("char_array", "char[1024]", b"x" * 1024, "x" * 1024),
    ("data_loc", "__data_loc char[]", b"\x0c\0\xb9\x0b" + b"y" * 3000 + b"\0", "y" * 3000),
    ("rel_loc", "__rel_loc char[]", b"\0\0\xb9\x0b" + b"z" * 3000 + b"\0", "z" * 3000),
    ("bytes", "__data_loc u8[]", b"\x0c\0\xe8\3" + b"\xab" * 1000, ",".join(["ab"] * 1000)),
)
def test_long_values(ue: UserEvents, type_text: str, payload: bytes, text: str) -> None:
    """Long texts and long arrays are printed completely."""
    assert recorded(ue, f"{type_text} a", payload) == [f"{ue.name()}: a={text}"]


@case(spec="trace_output.c:print_fields: FILTER_CPUMASK has no text")
def test_cpumask(ue: UserEvents) -> None:
    """A dynamic cpumask_t has no text: <INVALID-TYPE>; before 6.6, its bytes were shown."""
    seen = recorded(ue, "__data_loc cpumask_t a; u8 b", b"\x08\0\4\0\1")
    text = ue.dated("cpumasks_typed", since="<INVALID-TYPE>", before="08,00,04,00")
    assert seen == [ue.line(f"a={text}", "b=(1)")]


@case(spec="trace_output.c:print_fields: by size", tier="quick")
@variants(
    (1, b"A", "'A'(65)"),
    (2, b"\1\2", "0x201 (513)"),
    (3, b"abc", "<INVALID-SIZE>"),
    (4, b"\xff\xff\xff\xff", "0xffffffff (-1)"),
    (5, b"abcde", "<INVALID-SIZE>"),
    (8, b"\1\0\0\0\1\0\0\0", "0x100000001 (4294967297)"),
    (16, bytes(16), "<INVALID-SIZE>"),
    (1000, bytes(1000), "<INVALID-SIZE>"),
)
def test_struct(ue: UserEvents, size: int, payload: bytes, text: str) -> None:
    """A struct prints like an integer of its size, and has no text in other sizes."""
    assert recorded(ue, f"struct s a {size}", payload) == [f"{ue.name()}: a={text}"]


@case(spec="trace_events_filter.c:filter_assign_type")
def test_struct_named_like_text(ue: UserEvents) -> None:
    """A struct with "char" and "[" in its type prints as text, whatever its size."""
    seen = recorded(ue, "struct char[2] a 3; struct chars b 3", b"abcdef")
    assert seen == [ue.line("a=abc", "b=<INVALID-SIZE>")]


@case(tier="quick", switch="struct-data-loc")
@spec("trace_events_filter.c:filter_assign_type; trace_events_user.c:user_event_add_field")
@variants(
    ("data_loc.text", "__data_loc_char", b"\x0c\0\3\0", "ABC"),
    ("data_loc.bytes", "__data_loc_x", b"\x0c\0\3\0", "41,42,43"),
    ("data_loc.past_end", "__data_loc_char", b"\x0c\0\xff\0", "<OVERFLOW>"),
    ("data_loc.negative_length", "__data_loc_char", b"\x0c\0\xff\xff", ""),
    ("rel_loc.text", "x__rel_loc[char]", b"\1\0\3\0", "BCD"),
    ("rel_loc.past_end", "__rel_loc_x", b"\1\0\x08\0", "<OVERFLOW>"),
    ("rel_loc.negative_length", "__rel_loc_x", b"\1\0\xf0\xff", ""),
)
def test_struct_named_like_dynamic(ue: UserEvents, type_text: str, word: bytes, text: str) -> None:
    """A struct with "__data_loc" or "__rel_loc" in its type, which nothing validates, is EINVAL."""
    data = ue.open_data()
    errno = ue.bug("struct-data-loc", fixed="EINVAL", present="")
    assert data.register(f"{ue.name()} struct {type_text} a 4; char[8] b").errno == errno
    if not errno:
        ue.tracefs.enable(ue.name())
        assert data.write_event(0, word + b"ABCDEFGH").value == 16
        assert ue.tracefs.records() == [ue.line(f"a={text}", "b=ABCDEFGH")]


@case(spec="trace_output.c:print_event_fields", needs="empty_payload", tier="quick")
def test_no_fields(ue: UserEvents) -> None:
    """An event without fields prints its name and a colon without a space."""
    assert ue.event(enabled=True).write().value == 4
    assert ue.tracefs.records() == [f"{ue.name()}:No fields found"]


@case(tier="quick", spec="trace_output.c:print_fields: list_for_each_entry_reverse")
def test_order_of_fields(ue: UserEvents) -> None:
    """Fields print in the order of definition."""
    seen = recorded(ue, "u16 z; u16 a; u16 m", b"\1\0\2\0\3\0")
    assert seen == [f"{ue.name()}: z=0x1 (1) a=0x2 (2) m=0x3 (3)"]


@case(tier="quick")
@spec("trace_output.c:print_fields: field->offset; trace_events_user.c:user_event_add_field")
def test_packed_fields(ue: UserEvents) -> None:
    """Fields have no padding: a number at an odd offset is decoded from there."""
    seen = recorded(
        ue,
        "u8 a; u32 b; u16 c; u64 d; char[3] e; s32 f",
        b"\1" + b"\2\0\0\1" + b"\3\1" + b"\4\0\0\0\0\0\0\1" + b"xyz" + b"\xfe\xff\xff\xff",
    )
    values = (
        "a=(1)",
        "b=0x1000002 (16777218)",
        "c=0x103 (259)",
        "d=0x100000000000004 (72057594037927940)",
        "e=xyz",
        "f=0xfffffffe (-2)",
    )
    assert seen == [ue.line(*values)]


@case(spec="trace_output.c:print_fields: names are data, never a format", tier="quick")
@variants(
    ("percent", "u16 %s; u16 %n%d", ("%s=0x1 (1)", "%n%d=0x2 (2)")),
    ("common", "u16 common_pid; u16 b", ("common_pid=0x1 (1)", "b=0x2 (2)")),
    ("same_twice", "u16 a; u16 a", ("a=0x1 (1)", "a=0x2 (2)")),
    ("punctuation", "u16 a=b; u16 :(,", ("a=b=0x1 (1)", ":(,=0x2 (2)")),
    ("brackets", "u16 a[4]; u16 b", ("a[4]=0x1 (1)", "b=0x2 (2)")),
    quick=2,
)
def test_names(ue: UserEvents, fields: str, values: tuple[str, str]) -> None:
    """Field names print as given, whatever their characters."""
    assert recorded(ue, fields, b"\1\0\2\0") == [ue.line(*values)]


@case(spec="trace_output.c:print_event_fields")
@variants(
    ("percent", "%s%n"),
    ("dots", "a.b..c"),
    ("punctuation", "-+=@;,~"),
    ("unicode", "\u00e9\u4e16"),
    ("long", "x" * 200),
)
def test_event_names(ue: UserEvents, ending: str) -> None:
    """The name of the event precedes its fields as registered."""
    name = ue.name() + ending
    data = ue.register(name + " u16 a")
    ue.tracefs.enable(name)
    assert data.write_event(0, b"\1\0").value == 6
    assert ue.tracefs.records() == [f"{name}: a=0x1 (1)"]


@case(spec="trace_output.c:print_event_fields", profiles="5.18..")
def test_survives_disable(ue: UserEvents) -> None:
    """Records stay readable after the event is disabled and its word, if any, unregistered."""
    event = ue.event("u16 a", enabled=True)
    assert event.write(b"\1\0").value == 6
    event.disable()
    if ue.profile.has("remote_enable"):
        assert event.unregister().value == 0
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]
    ue.tracefs.clear_trace()
    assert ue.tracefs.records() == []


@case(spec="trace_output.c:print_event_fields", profiles="5.18..")
def test_several_events(ue: UserEvents) -> None:
    """Records of several events, files and processes are in the order of writing."""
    event = ue.event("u16 x", name="a")
    other = ue.event("u16 x", "a", of=ue.new_process()).data
    other.register(ue.name("b") + " char[2] y")
    event.enable()
    ue.tracefs.enable(ue.name("b"))
    event.write(b"\1\0")
    other.write_event(1, b"hi")
    other.write_event(0, b"\2\0")
    event.write(b"\3\0")
    assert ue.tracefs.records() == [
        ue.line("x=0x1 (1)", name="a", dump="01 00"),
        ue.line("y=hi", name="b", dump="68 69"),
        ue.line("x=0x2 (2)", name="a", dump="02 00"),
        ue.line("x=0x3 (3)", name="a", dump="03 00"),
    ]
