"""Registration strings of existing events: which fields are the same, and which are not."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.cases.declare import case
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/user_events.rst@v6.12"
COMMAND = f"{DOC}: Command Format: name, optional flags, fields separated by semicolons"
FIELD = f"{DOC}: Field Format: type, name, and a size for types that start with struct"
DYNAMIC = f"{DOC}: Overview: dynamic_events takes the same format behind the prefix u:"
BLOCKED = (
    f"{DOC}: Registering: processes are blocked when the format of their event changes, "
    "unless it is multi-format"
)
MATCH = "trace_events_user.c:user_fields_match"
Pairs = Mapping[str, tuple[str, str]]


SAME: Pairs = {
    "no-fields": ("", ""),
    "no-fields-space": ("", " "),
    "no-fields-spaces": (" ", "  \t"),
    "identical": (" u32 a; char[20] b", " u32 a; char[20] b"),
    "last-semicolon": (" u32 a", " u32 a;"),
    "first-had-semicolon": (" u32 a;", " u32 a"),
    "double-space": (" u32 a", " u32  a"),
    "tab": (" unsigned int a", " unsigned\tint\ta"),
    "trailing-space": (" u32 a", " u32 a "),
    "newline": (" u32 a; u64 b", " u32 a;\nu64 b\n"),
    "struct": (" struct s a 20; u32 b", " struct s a 20; u32 b"),
    "struct-spaces": (" struct s a 20", "  struct  s  a  20"),
    "locations": (" __data_loc char[] a; __rel_loc u32 b", " __data_loc char[] a; __rel_loc u32 b"),
}


@case("grammar.registers_again", spec=MATCH, doc=COMMAND, needs=("arguments_matched",))
def test_registers_again(ue: UserEvents) -> None:
    """The same fields, however spaced, find the existing event and its write index."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    for number, (stem, (first, second)) in enumerate(SAME.items()):
        assert data.register(ue.name(stem) + first, word=word, bit=number).index == number
        again = data.register(ue.name(stem) + second, word=other, bit=number)
        assert (again.errno, again.index) == ("", number)


CREATED_AGAIN: Pairs = {
    "no-fields": ("", " "),
    "identical": (" u32 a; char[20] b", " u32 a; char[20] b"),
    "last-semicolon": (" u32 a", " u32 a;"),
    "double-space": (" u32 a", " u32  a"),
    "struct": (" struct s a 20", " struct s\ta 20 "),
}


@case(
    "grammar.creates_again",
    spec=MATCH,
    doc=DYNAMIC,
    needs=("lasting_events",),
    tier="full",
    profiles="5.18..",
)
def test_creates_again(ue: UserEvents) -> None:
    """dynamic_events takes the same fields again, and keeps the events it has."""
    for stem, (first, _) in CREATED_AGAIN.items():
        assert ue.tracefs.command(f"u:{ue.name(stem)}{first}").errno == ""
    listed = ue.tracefs.dynamic_events()
    for stem, (_, second) in CREATED_AGAIN.items():
        assert ue.tracefs.command(f"u:{ue.name(stem)}{second}").errno == ""
    assert ue.tracefs.dynamic_events() == listed


UNSPACED: Pairs = {
    "again": (" u32 a;u32 b", " u32 a;u32 b"),
    "second": (" u32 a; u32 b", " u32 a;u32 b"),
    "last-semicolon": (" u32 a; u32 b", " u32 a;u32 b;"),
    "struct": (" struct s a 20; u32 b", " struct s a 20;u32 b"),
}


@case(
    "grammar.unspaced_registers_again",
    spec="trace_events_user.c:insert_space_after_semis",
    doc=COMMAND,
    needs=("arguments_matched",),
    tier="full",
)
def test_unspaced_registers_again(ue: UserEvents) -> None:
    """No space is needed behind a semicolon to find the event again."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    errno = ue.dated("unspaced_fields_match", since="", before="EADDRINUSE")
    for bit, (stem, (first, second)) in enumerate(UNSPACED.items()):
        assert data.register(ue.name(stem) + first, word=word, bit=bit).errno == ""
        assert data.register(ue.name(stem) + second, word=other, bit=bit).errno == errno


DIFFERENT: Pairs = {
    "type": (" u32 a", " u64 a"),
    "type-alias": (" u32 a", " unsigned int a"),
    "sign": (" u32 a", " s32 a"),
    "name": (" u32 a", " u32 b"),
    "name-case": (" u32 a", " u32 A"),
    "fewer": (" u32 a; u32 b", " u32 a"),
    "more": (" u32 a", " u32 a; u32 b"),
    "order": (" u32 a; u64 b", " u64 b; u32 a"),
    "none-for-some": (" u32 a", ""),
    "some-for-none": ("", " u32 a"),
    "array-notation": (" char[20] a", " char[0x14] a"),
    "location-kind": (" __data_loc char[] a", " __rel_loc char[] a"),
    "struct-tag": (" struct s a 20", " struct t a 20"),
    "prefix": (" u32 ab", " u32 a"),
    "longer": (" u32 a", " u32 ab"),
    "space-before-semicolon": (" u32 a", " u32 a ;"),
    "empty-piece": (" u32 a; u32 b", " u32 a;; u32 b"),
}


@case(
    "grammar.differs",
    spec=MATCH,
    doc=BLOCKED,
    needs=("arguments_matched",),
    tier="full",
)
def test_differs(ue: UserEvents) -> None:
    """Other fields for an existing name are refused: EADDRINUSE."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    for bit, (stem, (first, second)) in enumerate(DIFFERENT.items()):
        assert data.register(ue.name(stem) + first, word=word, bit=bit).errno == ""
        assert data.register(ue.name(stem) + second, word=other).errno == "EADDRINUSE"


@case(
    "grammar.differs_in_dynamic_events",
    spec=MATCH,
    doc=DYNAMIC,
    needs=("persist",),
    tier="full",
)
def test_differs_in_dynamic_events(ue: UserEvents) -> None:
    """dynamic_events refuses other fields for an existing name as well."""
    for stem in ("type", "more", "none-for-some", "some-for-none", "struct-tag"):
        first, second = DIFFERENT[stem]
        assert ue.tracefs.command(f"u:{ue.name(stem)}{first}").errno == ""
        assert ue.tracefs.command(f"u:{ue.name(stem)}{second}").errno == "EADDRINUSE"


@case(
    "grammar.not_parsed_for_an_existing_event",
    spec="trace_events_user.c:find_user_event",
    doc=FIELD,
    needs=("arguments_matched",),
    tier="full",
)
def test_not_parsed_for_an_existing_event(ue: UserEvents) -> None:
    """For an existing name fields are compared, never parsed: EADDRINUSE before EINVAL."""
    data = ue.open_data()
    assert data.register(f"{ue.name()} u32 a").errno == ""
    for fields in ("long a", "u32", "char[0] a", "struct s a 4294967295"):
        assert data.register(f"{ue.name()} {fields}").errno == "EADDRINUSE"


@case(
    "grammar.struct_size_differs",
    spec="trace_events_user.c:user_field_set_string",
    doc=FIELD,
    needs=("arguments_matched",),
    tier="full",
)
def test_struct_size_differs(ue: UserEvents) -> None:
    """The size of a structure is part of what is compared."""
    data = ue.open_data()
    assert data.register(f"{ue.name()} struct s a 20").errno == ""
    for again in ("struct s a 21", "struct s a 2", "struct s a"):
        assert data.register(f"{ue.name()} {again}").errno == "EADDRINUSE"


SELF_MISMATCHES = {
    "struct-leading-zero": " struct s a 020",
    "struct-plus": " struct s a +20",
    "struct-no-tag": " struct  a 20",
    "empty-piece": " u32 a;;u32 b",
    "first-semicolon": " ;u32 a",
    "semicolon-alone": " ;",
    "empty-field-name": " u32 ",
    "location-without-type": " __data_loc  a",
    "tab-in-field-name": " u32 a\tb",
    "no-break-space": " u32 à",
}


@case(
    "grammar.differs_from_itself",
    spec=MATCH,
    doc=f"{DOC}: Command Format: nothing is said about equal texts",
    needs=("arguments_matched",),
    tier="full",
)
def test_differs_from_itself(ue: UserEvents) -> None:
    """Some definitions are accepted once and then do not match their own text."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    for bit, (stem, fields) in enumerate(SELF_MISMATCHES.items()):
        assert data.register(ue.name(stem) + fields, word=word, bit=bit).errno == ""
        assert data.register(ue.name(stem) + fields, word=other).errno == "EADDRINUSE"


CANONICAL: Pairs = {
    "struct-leading-zero": (" struct s a 020", " struct s a 20"),
    "empty-piece": (" u32 a;;u32 b", " u32 a; u32 b"),
    "first-semicolon": (" ;u32 a", " u32 a"),
    "semicolon-alone": (" ;", ""),
}


@case(
    "grammar.canonical_form_registers_again",
    spec=MATCH,
    doc=COMMAND,
    needs=("arguments_matched",),
    tier="full",
)
def test_canonical_form_registers_again(ue: UserEvents) -> None:
    """What dynamic_events shows of such a definition does match it."""
    data = ue.open_data()
    for stem, (fields, _) in CANONICAL.items():
        assert data.register(ue.name(stem) + fields).errno == ""
    listed = ue.tracefs.dynamic_events().splitlines()
    assert listed == [f"u:{ue.name(stem)}{shown}" for stem, (_, shown) in CANONICAL.items()]
    for line in listed:
        assert data.register(line.removeprefix("u:")).errno == ""


@case("grammar.refused_spacing_matches", spec=MATCH, doc=COMMAND, needs=("arguments_matched",))
def test_refused_spacing_matches(ue: UserEvents) -> None:
    """A spacing that cannot create an event finds the one that exists."""
    data = ue.open_data()
    assert data.register(f"{ue.name()} u32  a").errno == "EINVAL"
    assert data.register(f"{ue.name()} u32 a").index == 0
    assert data.register(f"{ue.name()} u32  a").index == 0


@case(
    "grammar.other_process_differs",
    spec="trace_events_user.c:find_user_event",
    doc=f"{DOC}: Registering: processes are blocked when the format of their event changes, "
    "unless it is multi-format",
    needs=("arguments_matched",),
    tier="full",
)
def test_other_process_differs(ue: UserEvents) -> None:
    """Names are one space for all processes: other fields are refused to the second."""
    ue.open_data().register(f"{ue.name()} u32 a")
    other = ue.new_process().open_data()
    assert other.register(f"{ue.name()} u64 a").errno == "EADDRINUSE"
    assert other.register(f"{ue.name()} u32 a").index == 0
