"""The `format` file of an event: its parts, its whole text, and when it changes."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.format_text import fields_of, print_fmt_of
from conformance.ops import View

DOC = "Registering: events show up under tracefs like any other event"
case = surface("format", spec="trace_events.c:f_show", doc=DOC, level="detail", tier="full")

COMMON = (
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
)


@case(doc="events.rst@v6.12: Event formats: field type, name, offset, size", tier="quick")
def test_whole(ue: UserEvents) -> None:
    """The file has name, id, common fields, own fields and print fmt, tabs included."""
    ue.event("u32 count; __rel_loc u8 more; struct s pair 16")
    printing = '"count=%u more=%llu pair=%llu", REC->count, REC->more, REC->pair'
    print_fmt = ue.dated("print_fmt_generated", since=printing, before='""')
    assert ue.tracefs.format_with_lengths(ue.name()) == (
        f"name: {ue.name()}\nID: N\n"
        + COMMON
        + "\tfield:u32 count;\toffset:8;\tsize:4;\tsigned:0;\n"
        "\tfield:__rel_loc u8 more;\toffset:12;\tsize:4;\tsigned:1;\n"
        "\tfield:struct s pair;\toffset:16;\tsize:16;\tsigned:1;\n"
        "\n"
        f"print fmt: {print_fmt}\n"
    )


@case(doc="events.rst@v6.12: Event formats: field type, name, offset, size", tier="quick")
@variants({"none": "", "space": " ", "semicolons": " ;;"})
def test_no_fields(ue: UserEvents, arguments: str) -> None:
    """Without fields two blank lines and an empty print fmt remain."""
    ue.open_data().register(ue.name() + arguments)
    assert ue.tracefs.format_with_lengths(ue.name()) == (
        f"name: {ue.name()}\nID: N\n" + COMMON + '\nprint fmt: ""\n'
    )


@case(spec="trace_events_user.c:user_event_set_print_fmt", level="behaviour")
@doc("events.rst@v6.12: Event formats: field type, name, offset, size")
@variants(
    ("numbers", "u32 a;s64 b;u8 c", '"a=%u b=%lld c=%u", REC->a, REC->b, REC->c'),
    (
        "strings",
        "__data_loc char[] a;char[4] b;__rel_loc char[] c",
        '"a=%s b=%s c=%s", __get_str(a), REC->b, __get_rel_str(c)',
    ),
    ("twice", "u32 a;u64 a", '"a=%u a=%llu", REC->a, REC->a'),
)
def test_print_fmt_of_several(ue: UserEvents, fields: str, print_fmt: str) -> None:
    """The print fmt names all fields in order, separated by spaces, then their arguments."""
    ue.event(fields)
    text = ue.tracefs.format(ue.name())
    assert text.endswith("\n")
    assert print_fmt_of(text) == ue.dated("print_fmt_generated", since=print_fmt, before='""')


@case
def test_event_names(ue: UserEvents) -> None:
    """The first line has the name of the event as registered."""
    data = ue.open_data()
    for tail in ("%s%n", ".0", "größe", ";u32"):
        name = ue.name() + tail
        data.register(f"{name} u32 a")
        assert ue.tracefs.format(name).startswith(f"name: {name}\nID: N\nformat:\n")


@case(spec="trace_events_user.c:user_event_set_print_fmt", level="behaviour", tier="quick")
@doc("Command Format: silent about the number of fields")
def test_longest_text(ue: UserEvents) -> None:
    """An event with as many fields as a definition holds shows all of them."""
    text = ue.name() + " " + ";".join(f"u8 {chr(97 + number % 26)}" for number in range(100))
    ue.open_data().register(text)
    shown = ue.tracefs.format(ue.name())
    assert fields_of(shown)[99] == "field:u8 v; offset:107; size:1; signed:0;"
    assert print_fmt_of(shown).count("=%u") == ue.dated("print_fmt_generated", since=100, before=0)


@case(level="behaviour", needs="lasting_events", tier="quick")
@spec("trace_events_user.c:user_event_create")
@doc("Overview: a command has the format of the ioctl; silent about the text of the file")
@variants(
    ("scalar", "u32 a", "field:u32 a; offset:8; size:4; signed:0;"),
    ("array", "char[20] a", "field:char a[]; offset:8; size:20; signed:1;"),
    ("location", "__data_loc char[] a", "field:__data_loc char[] a; offset:8; size:4; signed:1;"),
    ("struct", "struct s a 20", "field:struct s a; offset:8; size:20; signed:1;"),
)
def test_of_dynamic_events(ue: UserEvents, fields: str, line: str) -> None:
    """An event created through dynamic_events has the same format as one created by ioctl."""
    assert ue.tracefs.command(f"u:{ue.name('d')} {fields}").errno == ""
    ue.event(fields, name="i")
    through_file, through_ioctl = (ue.tracefs.format(ue.name(stem)) for stem in "di")
    assert fields_of(through_file) == [line]
    assert fields_of(through_ioctl) == [line]
    assert print_fmt_of(through_file) == print_fmt_of(through_ioctl)


@case(spec="trace_events_user.c:user_event_parse", level="behaviour")
@doc("Registering: without MULTI_FORMAT another format is blocked; silent about what it leaves")
def test_stays(ue: UserEvents) -> None:
    """Neither other fields nor another spacing in a later registration change the format."""
    data = ue.event("unsigned int a;").data
    data.register(f"{ue.name()} u64 b")
    data.register(f"{ue.name()}  unsigned  int  a")
    assert fields_of(ue.tracefs.format(ue.name())) == [
        "field:unsigned int a; offset:8; size:4; signed:0;"
    ]


@case(tier="quick")
def test_of_an_enabled_event(ue: UserEvents) -> None:
    """Enabling an event and writing it do not change its format."""
    ue.event("u16 a; __data_loc char[] b", enabled=True).write(bytes.fromhex("01000e0002007800"))
    assert fields_of(ue.tracefs.format(ue.name())) == [
        "field:u16 a; offset:8; size:2; signed:0;",
        "field:__data_loc char[] b; offset:10; size:4; signed:1;",
    ]


@case(level="contract", profiles="6.4..", needs="auto_delete")
@spec("trace_events_user.c:destroy_user_event")
@doc("Deleting: events auto-delete when no references are left")
def test_gone_with_the_event(ue: UserEvents) -> None:
    """The format is deleted with its event; a new event of that name has its own."""
    event = ue.event("u32 a")
    event.unregister()
    event.data.close()
    path = ue.tracefs.event_path(ue.name(), "format")
    assert ue.tracefs.read(path, View.STRUCTURE, eventually=True).errno == "ENOENT"
    ue.event("s64 b")
    assert fields_of(ue.tracefs.format(ue.name())) == ["field:s64 b; offset:8; size:8; signed:1;"]


@case(spec="event_callback")
def test_modes(ue: UserEvents) -> None:
    """The files of a user event have the same modes as those of any event."""
    ue.event()
    files = ("enable", "filter", "trigger", "format", "id")
    modes = [ue.tracefs.mode(ue.tracefs.event_path(ue.name(), file)) for file in files]
    assert modes == [0o640, 0o640, 0o640, 0o440, 0o440]
