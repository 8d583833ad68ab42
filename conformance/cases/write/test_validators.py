"""write(): validation of the dynamic fields of a payload that is recorded.

A `__data_loc` or `__rel_loc` field is a word: offset in its low half, length in its high half.  The
offset of `__data_loc` counts from the start of the record, whose first 8 bytes are the common
fields; that of `__rel_loc` from the end of the word itself.
"""

from conformance.cases.case import UserEvents, doc, spec, surface, variants

DOC = (
    "include/uapi/linux/user_events.h@v6.12: DYN_LOC(offset, size) is size << 16 | "
    "offset; silent about checks"
)
case = surface("write", spec="user_event_validate", doc=DOC, level="behaviour")

# The first kernels validated nothing and recorded everything.
CHECKED = "dynamic_fields_validated"


def located(offset: int, length: int) -> bytes:
    """The word of a dynamic field."""
    return (length << 16 | offset).to_bytes(4, "little")


# An empty string whose preceding byte is not NUL.
AFTER_TEXT = "after text"


def shown(ue: UserEvents, text: str | None) -> str | None:
    """The text of a record, None for a payload that is refused."""
    if text != AFTER_TEXT:
        return text
    return ue.bug("empty-dynamic-string", fixed="", present=None)


# Record of 20 bytes: 8 common, u32 n at 8, the word at 12, "abc" and NUL at 16.
DATA_LOC_BOUNDS = {
    "whole": (16, 4, "abc"),
    "inner": (17, 3, "bc"),
    "last_byte": (19, 1, ""),
    "empty_at_end": (20, 0, ""),
    "empty_after_text": (17, 0, AFTER_TEXT),
    "without_nul": (16, 3, None),
    "one_byte_without_nul": (16, 1, None),
    "one_too_long": (16, 5, None),
    "starts_at_end": (20, 1, None),
    "empty_past_end": (21, 0, None),
    "other_field": (8, 4, "A"),
    "longest": (16, 0xFFFF, None),
    "farthest": (0xFFFF, 0, None),
    "all_ones": (0xFFFF, 0xFFFF, None),
}
REL_LOC_BOUNDS = {
    "whole": (0, 4, "abc"),
    "inner": (1, 3, "bc"),
    "last_byte": (3, 1, ""),
    "empty_at_end": (4, 0, ""),
    "empty_at_start": (0, 0, ""),
    "empty_after_text": (1, 0, AFTER_TEXT),
    "without_nul": (0, 3, None),
    "one_byte_without_nul": (0, 1, None),
    "one_too_long": (0, 5, None),
    "starts_at_end": (4, 1, None),
    "empty_past_end": (5, 0, None),
    "all_ones": (0xFFFF, 0xFFFF, None),
}


@case(bug="empty-dynamic-string")
@variants(DATA_LOC_BOUNDS)
def test_data_loc_bounds(ue: UserEvents, offset: int, length: int, text: str | None) -> None:
    """A `__data_loc` string must end within the record with a NUL as its last byte; else EFAULT."""
    event = ue.event("u32 n; __data_loc char[] m", enabled=True)
    payload = b"A\0\0\0" + located(offset, length) + b"abc\0"
    written = event.write(payload)
    text = shown(ue, text)
    if text is None and ue.dated(CHECKED, since=True, before=False):
        assert written.errno == "EFAULT"
        assert ue.tracefs.records() == []
    else:
        assert written.value == 16
        assert ue.tracefs.records() == [ue.line("n=0x41 (65)", f"m={text}", dump=payload.hex(" "))]


@case(needs="dynamic_fields_validated", switch="empty-dynamic-string")
def test_empty_string(ue: UserEvents) -> None:
    """A dynamic string of length 0 is accepted, whatever the byte before it."""
    event = ue.event("__data_loc char[] a; __rel_loc char[] b", enabled=True)
    errno = ue.bug("empty-dynamic-string", fixed="", present="EFAULT")
    assert event.write(located(18, 0) + located(2, 0) + b"abc\0").errno == errno


@case(spec="user_event_validate: VALIDATOR_REL", bug="empty-dynamic-string")
@variants(REL_LOC_BOUNDS)
def test_rel_loc_bounds(ue: UserEvents, offset: int, length: int, text: str | None) -> None:
    """A `__rel_loc` string must end within the record with a NUL as its last byte; else EFAULT."""
    event = ue.event("u32 n; __rel_loc char[] m", enabled=True)
    payload = b"A\0\0\0" + located(offset, length) + b"abc\0"
    written = event.write(payload)
    text = shown(ue, text)
    if text is None and ue.dated(CHECKED, since=True, before=False):
        assert written.errno == "EFAULT"
        assert ue.tracefs.records() == []
    else:
        assert written.value == 16
        assert ue.tracefs.records() == [ue.line("n=0x41 (65)", f"m={text}", dump=payload.hex(" "))]


@case(needs="dynamic_fields_validated")
@variants(("data_loc", "__data_loc char[] m", 12), ("rel_loc", "__rel_loc char[] m", 0))
def test_location_bits(ue: UserEvents, field: str, offset: int) -> None:
    """All 16 bits of offset and of length count: one more is EFAULT."""
    event = ue.event(field, enabled=True)
    for bit in range(16):
        for wrong in ((offset | 1 << bit, 3), (offset, 3 | 1 << bit)):
            if wrong != (offset, 3):
                assert event.write(located(*wrong) + b"ab\0").errno == "EFAULT"
    payload = located(offset, 3) + b"ab\0"
    assert event.write(payload).value == 11
    assert ue.tracefs.records() == [ue.line("m=ab", dump=payload.hex(" "))]


@case(needs="dynamic_fields_validated", tier="full")
@spec("user_event_validate: offset and size are 32 bits wide")
@variants(
    ("data_loc.text", "__data_loc char[] m"),
    ("data_loc.bytes", "__data_loc u8[] m"),
    ("rel_loc.text", "__rel_loc char[] m"),
    ("rel_loc.bytes", "__rel_loc u8[] m"),
)
def test_location_wraps(ue: UserEvents, field: str) -> None:
    """Offset plus length does not wrap at 64 KiB: an end past the record is EFAULT."""
    event = ue.event(field, enabled=True)
    for offset, length in ((0xFFFF, 1), (0xFFFC, 8), (0x8000, 0x8000), (0x7FFF, 0x8001)):
        assert event.write(located(offset, length) + bytes(8)).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(tier="full")
@variants(
    ("data_loc", "__data_loc char[] m", (12, 3), (12, 4)),
    ("rel_loc", "__rel_loc char[] m", (0, 3), (0, 4)),
    ("data_loc.bytes", "__data_loc u8[] m", (12, 3), (12, 4)),
    ("rel_loc.bytes", "__rel_loc u8[] m", (0, 3), (0, 4)),
)
def test_bounds_are_those_of_the_write(
    ue: UserEvents, fields: str, good: tuple[int, int], bad: tuple[int, int]
) -> None:
    """The padding of a record to a multiple of four bytes is not part of the payload."""
    event = ue.event(fields, enabled=True)
    errno = ue.dated(CHECKED, since="EFAULT", before="")
    assert event.write(located(*bad) + b"ab\0").errno == errno
    assert event.write(located(*good) + b"ab\0").value == 11
    assert len(ue.tracefs.records()) == ue.dated(CHECKED, since=1, before=2)


@case(spec="user_event_validate: no lower bound", level="detail")
@variants(("from_start", 0, 12), ("from_pid", 4, 8), ("before_field", 7, 5))
def test_data_loc_into_common_fields(ue: UserEvents, offset: int, length: int) -> None:
    """A `__data_loc` string may start in the common fields: only its end is checked."""
    event = ue.event("u32 n; __data_loc char[] m", enabled=True)
    zero, one = b"\0\0\0\0", b"\0\0\0\1"
    errno = ue.dated(CHECKED, since="EFAULT", before="")
    assert event.write(zero + located(offset, length)).value == 12
    assert event.write(one + located(offset, length)).errno == errno


@case(spec="user_event_validate: VALIDATOR_ENSURE_NULL; user_event_add_field", level="detail")
@doc("@v6.12: Writing Data: silent about strings")
@variants(
    ("data_loc.char", "__data_loc char", 12),
    ("data_loc.unsigned", "__data_loc unsigned char[]", 12),
    ("data_loc.char_array", "__data_loc char[]", 12),
    ("data_loc.inside_word", "__data_loc uchar_t[]", 12),
    ("rel_loc.char_array", "__rel_loc char[]", 0),
    ("rel_loc.inside_word", "__rel_loc wchar[]", 0),
)
def test_nul_needed(ue: UserEvents, type_text: str, offset: int) -> None:
    """If a dynamic type contains "char", its last byte must be NUL."""
    data = ue.event(f"{type_text} m", enabled=True).data
    unended = located(offset, 4) + b"abcd"
    assert data.write_event(0, unended).errno == ue.dated(CHECKED, since="EFAULT", before="")
    payload = located(offset, 4) + b"abc\0"
    assert data.write_event(0, payload).value == 12
    shown = ue.line("m=abc", dump=payload.hex(" "))
    dumped = [unended.hex(" "), shown]
    assert ue.tracefs.records() == ue.dated(CHECKED, since=[shown], before=dumped)


@case(spec="user_event_add_field", level="detail", doc="@v6.12: Writing Data: silent about strings")
@variants(
    ("data_loc.u8", "__data_loc u8[] m", located(12, 4) + b"abcd", "61,62,63,64"),
    ("data_loc.u8.empty", "__data_loc u8[] m", located(13, 0) + b"abcd", ""),
    ("data_loc.other", "__data_loc cha[] m", located(12, 2) + b"abcd", "61,62"),
    ("rel_loc.u32", "__rel_loc u32[] m", located(0, 4) + b"abcd", "61,62,63,64"),
    ("rel_loc.u32.empty", "__rel_loc u32[] m", located(1, 0) + b"abcd", ""),
    ("char_array", "char[4] m", b"abcd", "abcd"),
    ("struct", "struct char_s m 2", b"ab", "0x6261 (25185)"),
)
def test_nul_not_needed(ue: UserEvents, type_text: str, payload: bytes, text: str) -> None:
    """Dynamic types without "char", and types that are not dynamic, need no NUL."""
    assert ue.event(type_text, enabled=True).write(payload).ok
    assert ue.tracefs.records() == [ue.line(f"m={text}", dump=payload.hex(" "))]


@case
@variants(
    ("data_loc.one_too_long", "__data_loc u8[]", 12, 5),
    ("data_loc.empty_past_end", "__data_loc u8[]", 17, 0),
    ("data_loc.all_ones", "__data_loc u8[]", 0xFFFF, 0xFFFF),
    ("rel_loc.one_too_long", "__rel_loc u8[]", 0, 5),
    ("rel_loc.empty_past_end", "__rel_loc u8[]", 5, 0),
    ("rel_loc.all_ones", "__rel_loc u8[]", 0xFFFF, 0xFFFF),
)
def test_byte_bounds(ue: UserEvents, type_text: str, offset: int, length: int) -> None:
    """Dynamic fields that are no strings must end within the record as well; else EFAULT."""
    data = ue.event(f"{type_text} m", enabled=True).data
    payload = located(offset, length) + b"abcd"
    assert data.write_event(0, payload).errno == ue.dated(CHECKED, since="EFAULT", before="")
    assert ue.tracefs.records() == ue.dated(CHECKED, since=[], before=[payload.hex(" ")])


@case(spec="user_event_validate: in the order of definition", tier="quick")
@variants(
    ("second_bad", (22, 3), (7, 3), (22, 2), None),
    ("all_good", (22, 3), (7, 2), (22, 2), ("a=hi", "n=0x1 (1)", "b=x", "c=68,69")),
    ("same_bytes", (22, 3), (4, 3), (22, 3), ("a=hi", "n=0x1 (1)", "b=hi", "c=68,69,00")),
    ("first_bad", (22, 2), (7, 2), (22, 2), None),
    ("third_bad", (22, 3), (7, 2), (22, 6), None),
    ("all_bad", (22, 2), (7, 3), (22, 6), None),
)
def test_several_dynamic_fields(
    ue: UserEvents,
    first: tuple[int, int],
    second: tuple[int, int],
    third: tuple[int, int],
    values: tuple[str, ...] | None,
) -> None:
    """Every dynamic field of a record is checked; one bad field discards the record."""
    fields = "__data_loc char[] a; u16 n; __rel_loc char[] b; __data_loc u8[] c"
    data = ue.event(fields, enabled=True).data
    # a at 8, n at 12, b at 14, c at 18, "hi" at 22, "x" at 25, end at 27.
    payload = located(*first) + b"\1\0" + located(*second) + located(*third) + b"hi\0x\0"
    written = data.write_event(0, payload)
    if values is None:
        assert written.errno == ue.dated(CHECKED, since="EFAULT", before="")
        assert ue.tracefs.records() == ue.dated(CHECKED, since=[], before=[payload.hex(" ")])
    else:
        assert written.value == 23
        assert ue.tracefs.records() == [ue.line(*values, dump=payload.hex(" "))]


@case(spec="user_events_write_core, user_event_validate", level="detail")
@doc("@v6.12: Writing Data: silent about which of two errors is reported")
def test_order_listener_before_validators(ue: UserEvents) -> None:
    """A bad dynamic field of a disabled event is not checked; once enabled it is EFAULT."""
    event = ue.event("__data_loc char[] m")
    bad = b"\xff\xff\xff\xff"
    assert event.write(bad).errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")
    event.enable()
    assert event.write(bad).errno == ue.dated(CHECKED, since="EFAULT", before="")


@case(spec="user_event_validate looks at the copied record")
def test_validated_across_parts(ue: UserEvents) -> None:
    """Dynamic fields are checked across the whole record, however it is split into iovecs."""
    data = ue.event("__rel_loc char[] m", enabled=True).data
    assert data.writev([b"\0\0", b"\0\0\0", b"\0", b"\3", b"\0ab", b"\0"]).value == 11
    errno = ue.dated(CHECKED, since="EFAULT", before="")
    assert data.writev([b"\0\0", b"\0\0\0", b"\0", b"\3", b"\0ab", b"c"]).errno == errno
    shown = ue.line("m=ab", dump="00 00 03 00 61 62 00")
    dumped = [shown, "00 00 03 00 61 62 63"]
    assert ue.tracefs.records() == ue.dated(CHECKED, since=[shown], before=dumped)


@case(spec="user_event_ftrace: discard")
def test_discarded_record(ue: UserEvents) -> None:
    """A rejected payload leaves no trace between the records before and after it."""
    event = ue.event("__rel_loc char[] m", enabled=True)
    assert event.write(located(0, 2) + b"a\0").value == 10
    assert event.write(located(0, 2) + b"bb").errno == ue.dated(CHECKED, since="EFAULT", before="")
    assert event.write(located(0, 2) + b"c\0").value == 10
    first = ue.line("m=a", dump="00 00 02 00 61 00")
    last = ue.line("m=c", dump="00 00 02 00 63 00")
    dumped = [first, "00 00 02 00 62 62", last]
    assert ue.tracefs.records() == ue.dated(CHECKED, since=[first, last], before=dumped)
