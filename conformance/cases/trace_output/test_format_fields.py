"""Fields in the `format` file: names, offsets, sizes, signedness, print fmt."""

import re

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.format_text import fields_of, print_fmt_of

case = surface("format", spec="user_event_add_field", level="behaviour")

# Field, as `format` shows it (arrays without the text between their brackets), size, signedness,
# print fmt.
TYPES = {
    "scalars": (
        ("s8 a", "s8 a", 1, 1, '"a=%d", REC->a'),
        ("u8 a", "u8 a", 1, 0, '"a=%u", REC->a'),
        ("s16 a", "s16 a", 2, 1, '"a=%d", REC->a'),
        ("u16 a", "u16 a", 2, 0, '"a=%u", REC->a'),
        ("s32 a", "s32 a", 4, 1, '"a=%d", REC->a'),
        ("u32 a", "u32 a", 4, 0, '"a=%u", REC->a'),
        ("s64 a", "s64 a", 8, 1, '"a=%lld", REC->a'),
        ("u64 a", "u64 a", 8, 0, '"a=%llu", REC->a'),
        ("char a", "char a", 1, 1, '"a=%d", REC->a'),
        ("unsigned char a", "unsigned char a", 1, 0, '"a=%u", REC->a'),
        ("short a", "short a", 2, 1, '"a=%d", REC->a'),
        ("unsigned short a", "unsigned short a", 2, 0, '"a=%u", REC->a'),
        ("int a", "int a", 4, 1, '"a=%d", REC->a'),
        ("unsigned int a", "unsigned int a", 4, 0, '"a=%u", REC->a'),
    ),
    "arrays": (
        ("char[20] a", "char a[]", 20, 1, '"a=%s", REC->a'),
        ("unsigned char[20] a", "unsigned char a[]", 20, 0, '"a=%s", REC->a'),
        ("char[1024] a", "char a[]", 1024, 1, '"a=%s", REC->a'),
        ("char[024] a", "char a[]", 20, 1, '"a=%s", REC->a'),
        ("char[0x14] a", "char a[]", 20, 1, '"a=%s", REC->a'),
        ("char[5]x a", "char a[]", 5, 1, '"a=%s", REC->a'),
    ),
    "locations": (
        ("__data_loc char[] a", "__data_loc char[] a", 4, 1, '"a=%s", __get_str(a)'),
        (
            "__data_loc unsigned char[] a",
            "__data_loc unsigned char[] a",
            4,
            1,
            '"a=%s", __get_str(a)',
        ),
        ("__data_loc char[20] a", "__data_loc char[20] a", 4, 1, '"a=%s", __get_str(a)'),
        # Typed as a string, but not printed as one: the type has no bracket.
        ("__data_loc char a", "__data_loc char a", 4, 1, '"a=%llu", __get_str(a)'),
        ("__data_loc u32 a", "__data_loc u32 a", 4, 1, '"a=%llu", REC->a'),
        ("__rel_loc char[] a", "__rel_loc char a[]", 4, 1, '"a=%s", __get_rel_str(a)'),
        (
            "__rel_loc unsigned char[] a",
            "__rel_loc unsigned char a[]",
            4,
            1,
            '"a=%s", __get_rel_str(a)',
        ),
        ("__rel_loc u64 a", "__rel_loc u64 a", 4, 1, '"a=%llu", REC->a'),
    ),
    "structures": (
        ("struct s a 20", "struct s a", 20, 1, '"a=%llu", REC->a'),
        ("struct s* a 8", "struct s* a", 8, 1, '"a=%llu", REC->a'),
        ("struct s[3] a 12", "struct s a[]", 12, 1, '"a=%llu", REC->a'),
        ("struct char[4] a 4", "struct char a[]", 4, 1, '"a=%s", REC->a'),
    ),
}

# Old kernels show the text after the bracket.
OLDER = {"char[5]x a": "char a[5]x"}


@case(doc="Field Format: silent about how tools see a type")
@variants(TYPES, quick=3)
def test_types(ue: UserEvents, rows: tuple[tuple[str, str, int, int, str], ...]) -> None:
    """A field has the size, signedness and print fmt of its type, and follows the common fields."""
    # The text between the brackets of an array is covered by format.array_length.
    data, word = ue.open_data(), ue.process.word()
    for number, (field, now, size, signed, print_fmt) in enumerate(rows):
        name = ue.name(f"e{number}")
        assert data.register(f"{name} {field}", word=word, bit=number).errno == ""
        text = ue.tracefs.format(name)
        shown = ue.dated("array_length_of_field", since=now, before=OLDER.get(field, now))
        assert fields_of(text) == [f"field:{shown}; offset:8; size:{size}; signed:{signed};"]
        assert print_fmt_of(text) == ue.dated("print_fmt_generated", since=print_fmt, before='""')


@case(doc="Writing Data: an example of packed fields; silent about alignment")
def test_every_type_in_one(ue: UserEvents) -> None:
    """Fields keep the order of their definition, back to back, without alignment."""
    fields = (
        "u8 a;u64 b;s16 c;int d;char e;unsigned short f;char[3] g;struct s h 7;"
        "__data_loc char[] i;unsigned char[5] j;__rel_loc char[] k;s64 l;unsigned int m"
    )
    ue.event(fields)
    assert fields_of(ue.tracefs.format(ue.name())) == [
        "field:u8 a; offset:8; size:1; signed:0;",
        "field:u64 b; offset:9; size:8; signed:0;",
        "field:s16 c; offset:17; size:2; signed:1;",
        "field:int d; offset:19; size:4; signed:1;",
        "field:char e; offset:23; size:1; signed:1;",
        "field:unsigned short f; offset:24; size:2; signed:0;",
        "field:char g[]; offset:26; size:3; signed:1;",
        "field:struct s h; offset:29; size:7; signed:1;",
        "field:__data_loc char[] i; offset:36; size:4; signed:1;",
        "field:unsigned char j[]; offset:40; size:5; signed:0;",
        "field:__rel_loc char k[]; offset:45; size:4; signed:1;",
        "field:s64 l; offset:49; size:8; signed:1;",
        "field:unsigned int m; offset:57; size:4; signed:0;",
    ]


FIELD_NAMES = {
    "%s%n": ("field:u32 %s%n; offset:8; size:4; signed:0;", '"%s%n=%u", REC->%s%n'),
    'a"\\': ('field:u32 a"\\; offset:8; size:4; signed:0;', '"a"\\=%u", REC->a"\\'),
    "a[3]": ("field:u32 a[3]; offset:8; size:4; signed:0;", '"a[3]=%u", REC->a[3]'),
    "a:b": ("field:u32 a:b; offset:8; size:4; signed:0;", '"a:b=%u", REC->a:b'),
    "common_pid": (
        "field:u32 common_pid; offset:8; size:4; signed:0;",
        '"common_pid=%u", REC->common_pid',
    ),
    "": ("field:u32 ; offset:8; size:4; signed:0;", '"=%u", REC->'),
    "größe": ("field:u32 größe; offset:8; size:4; signed:0;", '"größe=%u", REC->größe'),
}


@case(spec="user_event_set_print_fmt", tier="full")
@doc("events.rst@v6.12: Event formats: field type, name, offset, size")
def test_field_names(ue: UserEvents) -> None:
    """Field names are shown as given, without quoting."""
    data = ue.open_data()
    for number, (field, (line, print_fmt)) in enumerate(FIELD_NAMES.items()):
        name = ue.name(f"e{number}")
        assert data.register(f"{name} u32 {field}").errno == ""
        text = ue.tracefs.format_with_lengths(name)
        assert fields_of(text) == [line]
        assert print_fmt_of(text) == ue.dated("print_fmt_generated", since=print_fmt, before='""')


@case(level="detail", switch="field-offset-wraps")
@doc("Field Format: structs have a size; silent about the largest")
def test_huge_structures(ue: UserEvents) -> None:
    """Fields that end after 2^31, where offsets are negative or wrap, are EINVAL."""
    huge = "struct s {} 2147483647"
    fields = "; ".join(huge.format(name) for name in "abc") + "; u8 d"
    errno = ue.bug("field-offset-wraps", fixed="EINVAL", present="")
    assert ue.open_data().register(f"{ue.name()} {fields}").errno == errno
    if errno:
        return
    assert fields_of(ue.tracefs.format(ue.name())) == [
        "field:struct s a; offset:8; size:2147483647; signed:1;",
        "field:struct s b; offset:2147483655; size:2147483647; signed:1;",
        "field:struct s c; offset:6; size:2147483647; signed:1;",
        "field:u8 d; offset:2147483653; size:1; signed:0;",
    ]


@case(spec="trace_events.c:f_show", level="detail")
@doc("trace_events.c:f_show@v6.12: the comment there:")
@doc("array types are rearranged, dynamic arrays are not")
@variants(
    ("empty", "__data_loc char[] a", "field:__data_loc char[] a; offset:8; size:4; signed:1;"),
    ("length", "__data_loc u8[7] a", "field:__data_loc u8[7] a; offset:8; size:4; signed:1;"),
    ("open", "__data_loc char[ a", "field:__data_loc char[ a; offset:8; size:4; signed:1;"),
)
def test_location_keeps_its_brackets(ue: UserEvents, field: str, line: str) -> None:
    """The brackets of a __data_loc type stay where they were written."""
    ue.event(field)
    assert fields_of(ue.tracefs.format_with_lengths(ue.name())) == [line]


ARRAYS = ("char[1] a", "char[20] a", "char[0x14] a", "char[1024] a", "unsigned char[7] a")


@case(spec="user_event_add_field leaves ftrace_event_field.len unset", switch="format-array-length")
@doc("Field Format: silent about how tools see a type")
def test_array_length(ue: UserEvents) -> None:
    """An array shows its length after its name."""
    data = ue.open_data()
    shown = {}
    for number, field in enumerate(ARRAYS):
        name = ue.name(f"e{number}")
        data.register(f"{name} {field}")
        shown[field] = "".join(fields_of(ue.tracefs.format_with_lengths(name)))
    in_hex = ue.dated("array_length_of_field", since="20", before="0x14")
    right = {
        "char[1] a": "field:char a[1]; offset:8; size:1; signed:1;",
        "char[20] a": "field:char a[20]; offset:8; size:20; signed:1;",
        "char[0x14] a": f"field:char a[{in_hex}]; offset:8; size:20; signed:1;",
        "char[1024] a": "field:char a[1024]; offset:8; size:1024; signed:1;",
        "unsigned char[7] a": "field:unsigned char a[7]; offset:8; size:7; signed:0;",
    }
    # Without that change, `format` repeats the text of the type, and shows no length of its own.
    repeats = not ue.profile.has("array_length_of_field")
    if repeats or ue.bug("format-array-length", fixed=True, present=False):
        assert shown == right
    else:
        assert shown != right
        assert all(
            re.fullmatch(
                r"field:(unsigned )?char a\[-?\d*\]; offset:8; size:\d+; signed:[01];", line
            )
            for line in shown.values()
        )


@case(spec="user_event_add_field allocates a field with kmalloc()", switch="format-array-leak")
@doc("Field Format: silent about how tools see a type")
def test_array_leak(ue: UserEvents) -> None:
    """The length of an array is no content of freed memory."""
    data = ue.open_data()
    shown = set()
    for number in range(3):
        # The kernel frees this text, which has the size of a field, just before it needs one.
        assert data.register(ue.name("x").ljust(56, "u") + " u32").errno == "EINVAL"
        name = ue.name(f"e{number}")
        data.register(f"{name} __rel_loc char[] a")
        (line,) = fields_of(ue.tracefs.format_with_lengths(name))
        shown.add(re.sub(r"-?\d+(?=\])", "N", line))
    empty = "field:__rel_loc char a[]; offset:8; size:4; signed:1;"
    number_shown = "field:__rel_loc char a[N]; offset:8; size:4; signed:1;"
    if not ue.profile.has("array_length_of_field"):
        assert shown == {empty}
    else:
        assert (number_shown in shown) == ue.bug("format-array-leak", fixed=False, present=True)
