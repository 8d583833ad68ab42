"""Dated changes of the generic tracing code: formats, ids, records and their text."""

from conformance.cases.case import UserEvents, doc, spec, surface
from conformance.cases.support.format_text import fields_of
from conformance.client.files import File
from conformance.client.tracefs import TRACE
from conformance.ops import View

case = surface("dated", spec="trace_output.c", level="detail")


@case(spec="trace_events.c:f_show", switch="array_length_of_field")
@doc("trace_events.c:f_show@v6.12: the comment there: TYPE[LEN] is shown as TYPE VAR[LEN]")
def test_array_length_of_field(ue: UserEvents) -> None:
    """`format` omits the text after the brackets of an array's type; old kernels show it."""
    # The text between the brackets is covered by format.array_length.
    ue.event("char[4]x a")
    assert fields_of(ue.tracefs.format(ue.name())) == [
        ue.dated(
            "array_length_of_field",
            since="field:char a[]; offset:8; size:4; signed:1;",
            before="field:char a[4]x; offset:8; size:4; signed:1;",
        )
    ]


@case(spec="register_trace_event", needs="lasting_events", isolation="global", switch="ids_reused")
@doc("events.rst@v6.12: silent about the numbers of events")
def test_ids_reused(ue: UserEvents) -> None:
    """A record of a deleted event prints as the event that reuses its id; before, as unknown."""
    ue.tracefs.command("u:first u16 a\n")
    data = ue.open_data()
    event = data.register("first u16 a")
    ue.tracefs.enable("first")
    assert data.write_event(0, b"hi").value == 6
    ue.tracefs.disable("first")
    if ue.profile.has("remote_enable"):
        data.unregister(event.word)
    data.close()
    assert ue.open_data().delete("first", eventually=True).value == 0
    assert ue.tracefs.bodies() == ["Unknown type N"]
    ue.tracefs.command("u:next char[2] a\n")
    shown = ue.dated("remote_enable", since="next: a=hi", before="68 69")
    assert ue.tracefs.bodies() == [ue.dated("ids_reused", since=shown, before="Unknown type N")]


# Fatal for the buffer: tracing_on does not enable it again.
@case(isolation="fatal", switch="long-record-stops-buffer")
@doc("Writing Data: silent about a limit")
@spec("ring_buffer.c:rb_reserve_next_event")
def test_long_records_kept(ue: UserEvents) -> None:
    """The first record of a buffer may have 4064 bytes, and the buffer goes on recording."""
    long, short = ue.event("struct s a 4064", name="long", enabled=True), ue.event("u8 a")
    ue.tracefs.enable(ue.name())
    ue.tracefs.clear_trace()
    assert (long.write(bytes(4064)).value, short.write(b"A").value) == (4068, 5)
    kept = ue.bug("long-record-stops-buffer", fixed=[ue.line("a='A'(65)", dump="41")], present=[])
    assert ue.tracefs.records(ue.name())[-1:] == kept


@case(doc="silent; events are viewed with ftrace", profiles="6.4..", switch="cpumasks_typed")
@spec("trace_events_filter.c:filter_assign_type; trace_output.c:print_fields")
def test_cpumasks_typed(ue: UserEvents) -> None:
    """A dynamic cpumask_t prints as <INVALID-TYPE>; before, as bytes."""
    ue.event("__data_loc cpumask_t a", enabled=True).write(b"\x0c\0\2\0" + b"\1\2")
    text = ue.dated("cpumasks_typed", since="<INVALID-TYPE>", before="01,02")
    assert ue.tracefs.records() == [f"{ue.name()}: a={text}"]


# Before, the file shows freed memory.
@case(needs="lasting_events deleted_files_refused", switch="deleted_files_refused")
@doc("Deleting: silent about open files")
@spec("trace_events.c:f_start: event_file_file")
def test_deleted_files_refused(ue: UserEvents) -> None:
    """Reading an open `format` file of a deleted event is ENODEV."""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    opened = File(ue.process, ue.tracefs.event_path(ue.name(), "format"))
    assert ue.open_data().delete(ue.name()).value == 0
    assert opened.read().errno == "ENODEV"


@case(spec="print_fields: FILTER_DYN_STRING", profiles="6.4..", switch="unprintable_text_as_hex")
@doc("silent; events are viewed with ftrace")
def test_unprintable_text_as_hex(ue: UserEvents) -> None:
    """A dynamic string with an unprintable byte prints unchanged; later as dots and hex."""
    ue.event("__data_loc char[] a", enabled=True).write(b"\x0c\0\4\0" + b"a\1b\0")
    text = ue.dated("unprintable_text_as_hex", since="a.b. (61:01:62:00)", before="a\1b")
    assert ue.tracefs.records() == [f"{ue.name()}: a={text}"]


# The symbol depends on where the kernel is loaded.
@case(profiles="6.4..", without="long_values_as_symbols", switch="long_values_as_symbols")
@doc("silent; events are viewed with ftrace;")
@doc("since 6.15 an address of the kernel prints as a symbol")
@spec("print_fields: size 8")
def test_long_values_as_symbols(ue: UserEvents) -> None:
    """The kernel's start address prints in digits, like any other 64-bit value."""
    ue.event("u64 a", enabled=True).write(b"\0\0\0\x81\xff\xff\xff\xff")
    assert ue.tracefs.records() == [f"{ue.name()}: a=0xffffffff81000000 (-2130706432)"]


@case(profiles="5.18..6.3", isolation="global", switch="long_lines_marked")
@spec("trace.c:s_show: TRACE_TYPE_PARTIAL_LINE")
@doc("silent; events are viewed with ftrace")
def test_long_lines_marked(ue: UserEvents) -> None:
    """A record too long for a line has an empty one, marked [LINE TOO BIG] by later kernels."""
    ue.event("struct s a 2000", enabled=True).write(bytes(2000))
    shown = ue.tracefs.read(TRACE, View.RECORDS).text.splitlines()
    marked = ue.dated("long_lines_marked", since=["line: [LINE TOO BIG]"], before=[])
    assert shown == ["entries: 1/1", "task 1 dump: ", *marked]
