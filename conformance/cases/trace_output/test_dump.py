"""Records in `trace` from 5.18 to 6.3: a hex dump, without decoded fields.

A line with the task is followed by a dump of the whole record, 16 bytes to a line, the first eight
of which are the common fields.  The cases compare what follows these.
"""

from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.trace_text import recorded

DOC = "@v6.1: silent; events are viewed with ftrace"
SPEC = "user_event_print_trace"
case = surface("trace", SPEC, DOC, level="detail", profiles="5.18..6.3", tier="full")


@case(tier="quick")
@variants(
    (
        "numbers",
        "u8 a; u16 b; u32 c; u64 d",
        b"\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08",
        "01 03 02 07 06 05 04 0f 0e 0d 0c 0b 0a 09 08",
    ),
    ("negative", "s16 a; s32 b", b"\xff\xff\xfe\xff\xff\xff", "ff ff fe ff ff ff"),
    ("text", "char[6] a", b"ab\0%s\n", "61 62 00 25 73 0a"),
    ("struct", "struct s a 5", b"\0\1\2\3\4", "00 01 02 03 04"),
    ("data_loc", "__data_loc char[] a", b"\x0c\0\3\0hi\0", "0c 00 03 00 68 69 00"),
    ("rel_loc", "__rel_loc u8[] a", b"\0\0\2\0\xfe\xff", "00 00 02 00 fe ff"),
    ("odd_offsets", "u8 a; u32 b; u8 c", b"\1\5\4\3\2\6", "01 05 04 03 02 06"),
    ("behind_the_last", "u8 a", b"\1more", "01 6d 6f 72 65"),
)
def test_dump_of_fields(ue: UserEvents, fields: str, payload: bytes, dump: str) -> None:
    """Fields of any type are dumped as the bytes that were written, back to back."""
    assert recorded(ue, fields, payload) == [dump]


@case(spec="trace_seq.c:trace_seq_hex_dump", tier="quick")
def test_dump_of_all_bytes(ue: UserEvents) -> None:
    """Every byte is two hexadecimal digits, in the order of the record, over many lines."""
    (seen,) = recorded(ue, "u8 a", bytes(range(256)))
    assert seen.startswith("00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 ")
    assert seen.endswith(" f8 f9 fa fb fc fd fe ff")
    assert seen == " ".join(f"{byte:02x}" for byte in range(256))


@case
def test_dump_of_every_length(ue: UserEvents) -> None:
    """A record is dumped to its last byte, whether its length is a multiple of four or not."""
    text = b"abcdefghijklmnopqrstuvwxy"
    seen = recorded(ue, "u8 a", *(text[:length] for length in range(1, 26)))
    assert seen[:3] == ["61", "61 62", "61 62 63"]
    # With the common fields one, two and three lines; then one byte more.
    assert (seen[7], seen[8]) == ("61 62 63 64 65 66 67 68", "61 62 63 64 65 66 67 68 69")
    assert seen[24].endswith(" 75 76 77 78 79")
    assert [len(line.split()) for line in seen] == list(range(1, 26))


@case(spec="trace_seq.c:trace_seq_hex_dump")
@variants(
    # 52 lines of 76 characters fit; 54 exceed the page that they are printed to.
    (824, 824),
    (856, 0),
    (3000, 0),
)
def test_dump_left_out(ue: UserEvents, length: int, shown: int) -> None:
    """A dump that does not fit into a page is left out; the line of its record stays."""
    seen = recorded(ue, "u8 a", b"a", b"x" * length, b"b")
    assert seen == ["61", " ".join(["78"] * shown), "62"]


@case
def test_dump_names_nothing(ue: UserEvents) -> None:
    """Neither the event nor its fields are named: equal bytes of two events look alike."""
    data = ue.register(a="u16 x; u16 y", b="char[4] z")
    ue.enable("a", "b")
    data.write_event(0, b"same")
    data.write_event(1, b"same")
    assert ue.tracefs.records() == ["73 61 6d 65", "73 61 6d 65"]
    assert ue.tracefs.records(ue.name("a")) == ["73 61 6d 65", "73 61 6d 65"]


@case
def test_dump_of_several_writers(ue: UserEvents) -> None:
    """Dumps of different lengths, events and processes are in the order of writing."""
    event = ue.event("u8 x", name="a")
    other = ue.event("char[20] y", "b", of=ue.new_process()).data
    event.enable()
    ue.tracefs.enable(ue.name("b"))
    event.write(b"\1")
    other.write_event(0, b"a" * 20)
    event.write(b"\2\2")
    other.write_event(0, b"b" * 20)
    event.write(b"\3" * 30)
    assert ue.tracefs.records() == [
        "01",
        " ".join(["61"] * 20),
        "02 02",
        " ".join(["62"] * 20),
        " ".join(["03"] * 30),
    ]


@case
def test_dump_of_text_like_a_dump(ue: UserEvents) -> None:
    """Text in a record starts no new line, even if it looks like trace output."""
    first = b"\n00000000: 41 42 43 44\n"
    second = b"\n a-1 [000] ..... 0.000000: \n\0"
    assert recorded(ue, "u8 a", first, second) == [
        "0a 30 30 30 30 30 30 30 30 3a 20 34 31 20 34 32 20 34 33 20 34 34 0a",
        "0a 20 61 2d 31 20 5b 30 30 30 5d 20 2e 2e 2e 2e 2e 20 30 2e 30 30 30 30 30 30 3a 20 0a 00",
    ]


@case(spec="user_event_ftrace: copy_nofault of no byte", level="behaviour", tier="quick")
def test_dump_without_payload(ue: UserEvents) -> None:
    """An event without fields is recorded only if bytes follow its index."""
    event = ue.event(enabled=True)
    errno = ue.dated("empty_payload", since="", before="EFAULT")
    assert event.write().errno == errno
    assert event.write(b"\xa0").value == 5
    assert event.write().errno == errno
    assert ue.tracefs.records() == ue.dated("empty_payload", since=["", "a0", ""], before=["a0"])


@case(spec="user_event_ftrace: discard", level="behaviour")
def test_dump_of_a_refused_payload(ue: UserEvents) -> None:
    """A payload rejected by validation is not dumped and leaves no gap."""
    errno = ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    event = ue.event("u8 n; __data_loc char[] m", enabled=True)
    assert event.write(b"\1\x0d\0\2\0a\0").value == 11
    assert event.write(b"\2\x0d\0\2\0ab").errno == errno
    assert event.write(b"\3\x0d\0\3\0b\0").errno == errno
    assert event.write(b"\4\x0d\0\1\0\0").value == 10
    refused = ["02 0d 00 02 00 61 62", "03 0d 00 03 00 62 00"]
    between = ue.dated("dynamic_fields_validated", since=[], before=refused)
    assert ue.tracefs.records() == ["01 0d 00 02 00 61 00", *between, "04 0d 00 01 00 00"]
