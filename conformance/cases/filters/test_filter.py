"""ftrace filters on the fields of user events: which records pass, and the filter of a system."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.client.perf import open_perf

DOC = "events.rst@v6.12"
case = surface("filter", spec="trace_events_filter.c:select_comparison_fn", doc=DOC, level="detail")


@case(doc="Event filtering: ==, !=, <, <=, >, >= and & for numeric fields")
@variants(
    ("u32-equal", "u32", "a == 65", b"\x41\0\0\0", b"\x42\0\0\0", "0x41 (65)"),
    ("u32-unequal", "u32", "a != 65", b"\x42\0\0\0", b"\x41\0\0\0", "0x42 (66)"),
    ("u32-unsigned", "u32", "a > 1", b"\0\0\0\x80", b"\1\0\0\0", "0x80000000 (-2147483648)"),
    ("s32-signed", "s32", "a < 1", b"\0\0\0\x80", b"\1\0\0\0", "0x80000000 (-2147483648)"),
    ("s32-at-least", "int", "a >= -1", b"\xff\xff\xff\xff", b"\xfe\xff\xff\xff", "0xffffffff (-1)"),
    ("u8-at-most", "u8", "a <= 65", b"\x41", b"\x42", "'A'(65)"),
    ("u8-unsigned", "unsigned char", "a >= 128", b"\x80", b"\x7f", "(128)"),
    ("s8-signed", "s8", "a < 0", b"\x80", b"\x7f", "(128)"),
    ("char-signed", "char", "a > -1", b"\x7f", b"\x80", "(127)"),
    ("u16-less", "u16", "a < 256", b"\xff\0", b"\0\1", "0xff (255)"),
    ("u16-unsigned", "u16", "a > 1", b"\0\x80", b"\1\0", "0x8000 (32768)"),
    ("s16-signed", "s16", "a < 1", b"\0\x80", b"\1\0", "0x8000 (32768)"),
    ("s16-at-most", "short", "a <= -2", b"\xfe\xff", b"\xff\xff", "0xfffe (65534)"),
    ("s16-unequal", "s16", "a != -1", b"\0\0", b"\xff\xff", "0x0 (0)"),
    (
        "u64-more",
        "u64",
        "a > 4294967296",
        bytes(4) + b"\2\0\0\0",
        bytes(4) + b"\1\0\0\0",
        "0x200000000 (8589934592)",
    ),
    (
        "u64-unsigned",
        "u64",
        "a < 0x8000000000000000",
        b"\1" + bytes(7),
        bytes(7) + b"\x80",
        "0x1 (1)",
    ),
    ("s64-at-least", "s64", "a >= -5", b"\5" + bytes(7), b"\xfa" + b"\xff" * 7, "0x5 (5)"),
    ("u8-bits", "u8", "a & 6", b"\2", b"\x49", "(2)"),
    (
        "s32-sign-bit",
        "s32",
        "a & 0x80000000",
        b"\0\0\0\x80",
        b"\xff\xff\xff\x7f",
        "0x80000000 (-2147483648)",
    ),
    ("hexadecimal", "u16", "a == 0x1F", b"\x1f\0", b"\x20\0", "0x1f (31)"),
    ("octal", "u16", "a == 017", b"\x0f\0", b"\x11\0", "0xf (15)"),
    # Of a number too large for the field, the low bytes are compared.
    ("cut-off", "u8", "a == 321", b"\x41", b"\x40", "'A'(65)"),
    ("struct", "struct s", "a == 65", b"\x41\0\0\0", b"\x42\0\0\0", "0x41 (65)"),
)
def test_number(ue: UserEvents, field: str, text: str, good: bytes, bad: bytes, shown: str) -> None:
    """A record that fails a numeric filter is not recorded; write still returns the count."""
    data = ue.register(f"{ue.name()} {field} a" + (" 4" if field == "struct s" else ""))
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.directory(ue.name()).set_filter(text).errno == ""
    assert data.write_event(0, bad).value == 4 + len(bad)
    assert data.write_event(0, good).value == 4 + len(good)
    assert ue.tracefs.records() == [ue.line(f"a={shown}", dump=good.hex(" "))]


@case(spec="predicate_parse", tier="full")
@doc("Event filtering: && and ||, grouped with parentheses, negated with !")
@variants(
    ("precedence", "a == 1 || a == 0 && b == 1", [(0, 1), (1, 0), (1, 1)]),
    ("parentheses", "(a == 1 || a == 0) && b == 1", [(0, 1), (1, 1)]),
    ("and", "a == 1 && b == 1", [(1, 1)]),
    ("or", "a == 1 || b == 1", [(0, 1), (1, 0), (1, 1)]),
    ("three", "a == 0 && b == 0 || a == 1 && b == 1", [(0, 0), (1, 1)]),
    ("not", "!a == 1 && b == 1", [(0, 1)]),
    ("not-group", "!(a == 1 && b == 1)", [(0, 0), (0, 1), (1, 0)]),
    ("not-twice", "!(!(a == 1) || b == 1)", [(1, 0)]),
    ("not-in-or", "!(a == 1 || b == 1) || a == 1 && b == 1", [(0, 0), (1, 1)]),
    ("no-spaces", "a==1&&b!=1", [(1, 0)]),
    ("spaces", "  (  a  ==  1\t)  ", [(1, 0), (1, 1)]),
    ("nested", "((a == 0 || (b == 0)))", [(0, 0), (0, 1), (1, 0)]),
    ("nothing", "a == 1 && a == 0", []),
    ("six-or", "a == 2 || a == 3 || b == 2 || b == 3 || a == 4 || a == 1 && b == 0", [(1, 0)]),
    (
        "six-and",
        "a != 2 && a != 3 && b != 2 && b != 3 && (a == 4 || a == 0) && !(b == 0)",
        [(0, 1)],
    ),
)
def test_expression(ue: UserEvents, text: str, kept: list[tuple[int, int]]) -> None:
    """Comparisons combine with &&, ||, ! and parentheses; && binds tighter than ||."""
    event = ue.event("u8 a; u8 b", enabled=True)
    assert event.directory.set_filter(text).errno == ""
    for payload in (b"\0\0", b"\0\1", b"\1\0", b"\1\1"):
        assert event.write(payload).value == 6
    lines = [ue.line(f"a=({a})", f"b=({b})", dump=f"{a:02x} {b:02x}") for a, b in kept]
    assert ue.tracefs.records() == lines


# The first kernels crash: dated.odd_sizes_compared.
@case(needs="filter-odd-size-oops", tier="full", switch="filter-odd-size")
@doc("Event filtering: numeric fields; of fields of other sizes it says nothing")
@variants(
    ("equal", "struct s a 3; u8 b", "a == 0", b"\0\0\0\1"),
    ("unequal", "struct s a 3", "a != 0", b"\0\0\0"),
    ("large", "struct s a 16", "a >= 0", bytes(16)),
)
def test_other_sizes(ue: UserEvents, fields: str, text: str, payload: bytes) -> None:
    """A field of a size that no integer has cannot be compared with a number."""
    event = ue.event(fields, enabled=True)
    filtered = event.directory.set_filter(text)
    assert filtered.errno == ue.bug("filter-odd-size", fixed="EINVAL", present="")
    assert event.write(payload).value == 4 + len(payload)
    assert len(ue.tracefs.records()) == ue.bug("filter-odd-size", fixed=1, present=0)


@case(doc="Event filtering: fields are known by their names", tier="full")
@spec("trace_events.c:trace_find_event_field; trace_events_user.c:user_event_add_field")
def test_two_fields_of_a_name(ue: UserEvents) -> None:
    """Of two fields of the same name a filter uses the one defined last."""
    event = ue.event("u8 a; u8 a", enabled=True)
    assert event.directory.set_filter("a == 2").errno == ""
    event.write(b"\2\1")
    event.write(b"\1\2")
    assert ue.tracefs.records() == [ue.line("a=(1)", "a=(2)", dump="01 02")]


@case(doc="Event filtering: fields are known by their names", tier="full")
@spec("trace_events.c:trace_find_event_field")
def test_own_field_first(ue: UserEvents) -> None:
    """A field of the event hides the name of the task."""
    event = ue.event("u8 comm; u8 COMM", enabled=True)
    assert event.directory.set_filter("comm == 1 && COMM == 2").errno == ""
    event.write(b"\1\1")
    event.write(b"\1\2")
    assert ue.tracefs.records() == [ue.line("comm=(1)", "COMM=(2)", dump="01 02")]


@case(spec="trace_events.c:trace_define_common_fields", tier="full")
@doc("Event filtering: the common fields of all events may be used")
@variants(
    ("pid", "common_pid > 1", 1),
    # The writer is not PID 1.
    ("other-pid", "common_pid == 1", 0),
    ("name", 'COMM == "nobody"', 0),
    ("name-not", 'comm != "nobody"', 1),
)
def test_common_fields(ue: UserEvents, text: str, count: int) -> None:
    """An event without fields can be filtered by the common fields of its writer."""
    event = ue.event(enabled=True)
    assert event.directory.set_filter("a == 1").errno == "EINVAL"
    assert event.directory.set_filter(text).errno == ""
    event.write(ue.dated("empty_payload", since=b"", before=b"\1"))
    found = ue.tracefs.records()
    dumped = ue.dated("empty_payload", since="", before="01")
    line = ue.dated("remote_enable", since=f"{ue.name()}:No fields found", before=dumped)
    assert found == [line] * count


@case(level="behaviour", needs="perf_sink", facilities="perf")
@spec("trace_events_user.c:user_event_perf")
@doc("@v6.12: Writing Data: silent about filters")
def test_not_for_perf(ue: UserEvents) -> None:
    """A record that the ftrace filter rejects still reaches perf."""
    event = ue.event("u8 a")
    perf = open_perf(ue.process, ue.name())
    ue.tracefs.enable(ue.name())
    ue.tracefs.directory(ue.name()).set_filter("a == 1")
    event.write(b"\2")
    event.write(b"\1")
    assert perf.count == 2
    assert ue.tracefs.records() == [ue.line("a=(1)", dump="01")]


@case(level="behaviour", needs="dynamic_fields_validated")
@spec("trace_events_user.c:user_event_validate")
@doc("@v6.12: Writing Data: silent about dynamic fields and filters")
def test_checked_first(ue: UserEvents) -> None:
    """A record that the filter would reject is validated first: EFAULT if it is malformed."""
    event = ue.event("u8 a; __rel_loc char[] s", enabled=True)
    assert event.directory.set_filter("a == 1").errno == ""
    assert event.write(b"\2\0\0\2\0x\0").value == 11
    assert event.write(b"\2\0\0\2\0xx").errno == "EFAULT"
    assert event.write(b"\1\0\0\3\0x\0").errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(needs="dynamic_fields_validated", isolation="global", tier="full")
@spec("trace.c:trace_event_buffer_lock_reserve")
@doc("ftrace.rst@v6.12: tracing_on: 0 stops recording")
def test_checked_while_tracing_is_off(ue: UserEvents) -> None:
    """With tracing off a malformed payload is not validated, unless there is a filter."""
    event = ue.event("__rel_loc char[] s", enabled=True)
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "0\n")
    assert event.write(b"\0\0\2\0xx").value == 10
    event.directory.set_filter("common_pid > 1")
    assert event.write(b"\0\0\2\0xx").errno == "EFAULT"
    assert event.write(b"\0\0\2\0x\0").value == 10
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "1\n")
    assert ue.tracefs.records() == []


@case(needs="dynamic_fields_validated", tier="full", doc="@v6.12: Writing Data: documents no limit")
@spec("trace.c:trace_event_buffer_lock_reserve: max_len")
@variants(("checked", 4080, "EFAULT"), ("dropped", 4081, ""))
def test_long_records(ue: UserEvents, size: int, errno: str) -> None:
    """With a filter, payloads up to 4080 bytes are validated, though over 4064 none is recorded."""
    event = ue.event("__rel_loc char[] s", enabled=True)
    event.directory.set_filter("common_pid > 1")
    assert event.write(b"\0\0\4\0".ljust(size, b"x")).errno == errno
    assert event.write(b"\0\0\4\0".ljust(size, b"\0")).value == size + 4
    assert ue.tracefs.records() == []


SYSTEM_FILTER = "/sys/kernel/tracing/events/user_events/filter"
GLOBAL = (
    "### global filter ###\n"
    "# Use this to set filters for multiple events.\n"
    "# Only events with the given fields will be affected.\n"
    "# If no events are modified, an error message will be displayed here\n"
)
NOT_IN_ALL = "^\nparse_error: Couldn't find or set field in one of a subsystem's events\n"


@case(spec="process_system_preds", tier="full", isolation="global")
@doc("Subsystem filters: for events with the field")
def test_system(ue: UserEvents) -> None:
    """The filter of the system is set on each user event, or shown there with its error."""
    data = ue.register(e="u8 a", other="u8 b")
    for stem in ("e", "other"):
        ue.tracefs.enable(ue.name(stem))
    first, second = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    second.set_filter("b == 1")
    assert ue.tracefs.write(SYSTEM_FILTER, "a == 1\n").value == 7
    assert (first.filter, second.filter) == ("a == 1\n", f"a == 1\n{NOT_IN_ALL}\n")
    data.write_event(0, b"\2")
    data.write_event(1, b"\2")
    assert ue.tracefs.records() == [ue.line("b=(2)", dump="02", name="other")]
    assert ue.tracefs.read(SYSTEM_FILTER).text == GLOBAL
    assert ue.tracefs.write(SYSTEM_FILTER, "0\n").errno == ""
    assert (first.filter, second.filter) == ("none\n", "none\n")
    data.write_event(0, b"\2")
    lines = [ue.line("b=(2)", dump="02", name="other"), ue.line("a=(2)", dump="02")]
    assert ue.tracefs.records() == lines


@case(tier="full", isolation="global", switch="system-filter-never-fails")
@spec("apply_subsystem_event_filter")
@doc("Subsystem filters: an error where no event has it")
def test_system_of_nothing(ue: UserEvents) -> None:
    """A filter that no event of the system accepts is an error, and the events lose theirs."""
    directory = ue.event("u8 a").directory
    directory.set_filter("a == 1")
    filtered = ue.tracefs.write(SYSTEM_FILTER, "nothing\n")
    failed = f"nothing\n{NOT_IN_ALL}\n"
    assert filtered.errno == ue.bug("system-filter-never-fails", fixed="EINVAL", present="")
    assert directory.filter == failed
    shown = ue.bug("system-filter-never-fails", fixed=failed, present=GLOBAL)
    assert ue.tracefs.read(SYSTEM_FILTER).text == shown
    multi = SYSTEM_FILTER.replace("user_events", "user_events_multi")
    assert ue.tracefs.write(multi, "a == 1\n").errno == "ENOENT"
