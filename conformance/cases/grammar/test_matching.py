"""Registration strings of existing events: which fields match."""

from conformance.cases.case import UserEvents, surface
from conformance.cases.support.field_pairs import CANONICAL, DIFFERENT, SAME, SELF_MISMATCHES, Pairs

DOC = (
    "Registering: without MULTI_FORMAT another format blocks a program; silent about what "
    "makes formats equal"
)
case = surface("grammar", spec="user_fields_match", doc=DOC, level="behaviour", tier="full")


@case(tier="quick")
def test_registers_again(ue: UserEvents) -> None:
    """The same fields, however spaced, match the existing event and return its write index."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    # Before sizes were compared, a struct did not match itself.
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    struct = ue.dated("struct_size_matched", since="", before=unlike)
    for number, (stem, (first, second)) in enumerate(SAME.items()):
        assert data.register(ue.name(stem) + first, word=word, bit=number).index == number
        again = data.register(ue.name(stem) + second, word=other, bit=number)
        errno = struct if "struct" in first else ""
        assert (again.errno, again.index) == (errno, 0xFFFFFFFF if errno else number)


CREATED_AGAIN: Pairs = {
    "no-fields": ("", " "),
    "identical": (" u32 a; char[20] b", " u32 a; char[20] b"),
    "last-semicolon": (" u32 a", " u32 a;"),
    "double-space": (" u32 a", " u32  a"),
    "struct": (" struct s a 20", " struct s\ta 20 "),
}


@case(needs="lasting_events")
def test_creates_again(ue: UserEvents) -> None:
    """dynamic_events accepts the same fields again and keeps its events."""
    for stem, (first, _) in CREATED_AGAIN.items():
        assert ue.tracefs.command(f"u:{ue.name(stem)}{first}").errno == ""
    listed = ue.tracefs.dynamic_events()
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    struct = ue.dated("struct_size_matched", since="", before=unlike)
    for stem, (_, second) in CREATED_AGAIN.items():
        errno = struct if stem == "struct" else ""
        assert ue.tracefs.command(f"u:{ue.name(stem)}{second}").errno == errno
    assert ue.tracefs.dynamic_events() == listed


UNSPACED: Pairs = {
    "again": (" u32 a;u32 b", " u32 a;u32 b"),
    "second": (" u32 a; u32 b", " u32 a;u32 b"),
    "last-semicolon": (" u32 a; u32 b", " u32 a;u32 b;"),
    "struct": (" struct s a 20; u32 b", " struct s a 20;u32 b"),
    "eighty": (" u8 a" + ";u8 a" * 79, " u8 a" + "; u8 a" * 40 + ";u8 a" * 39),
}


@case(spec="insert_space_after_semis", tier="quick")
def test_unspaced_registers_again(ue: UserEvents) -> None:
    """No space is needed after a semicolon for the event to match."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    errno = ue.dated("unspaced_fields_match", since="", before=unlike)
    struct = ue.dated("struct_size_matched", since=errno, before=unlike)
    for bit, (stem, (first, second)) in enumerate(UNSPACED.items()):
        assert data.register(ue.name(stem) + first, word=word, bit=bit).errno == ""
        again = data.register(ue.name(stem) + second, word=other, bit=bit)
        assert again.errno == (struct if stem == "struct" else errno)


@case
def test_differs(ue: UserEvents) -> None:
    """Other fields for an existing name are EADDRINUSE; before 6.4 they were ignored."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    for bit, (stem, (first, second)) in enumerate(DIFFERENT.items()):
        assert data.register(ue.name(stem) + first, word=word, bit=bit).errno == ""
        again = data.register(ue.name(stem) + second, word=other, bit=bit)
        assert again.errno == ue.dated("arguments_matched", since="EADDRINUSE", before="")
    kept = [f"u:{ue.name(stem)}{first}" for stem, (first, _) in DIFFERENT.items()]
    assert ue.tracefs.dynamic_events().splitlines() == kept


@case(needs="lasting_events")
def test_differs_in_dynamic_events(ue: UserEvents) -> None:
    """dynamic_events rejects other fields for an existing name as well, or ignores them."""
    for stem in ("type", "more", "none-for-some", "some-for-none", "struct-tag"):
        first, second = DIFFERENT[stem]
        assert ue.tracefs.command(f"u:{ue.name(stem)}{first}").errno == ""
        again = ue.tracefs.command(f"u:{ue.name(stem)}{second}")
        assert again.errno == ue.dated("arguments_matched", since="EADDRINUSE", before="")
        assert ue.tracefs.dynamic_events().endswith(f"u:{ue.name(stem)}{first}\n")


@case(spec="find_user_event", level="detail")
def test_not_parsed_for_an_existing_event(ue: UserEvents) -> None:
    """For an existing name, fields are compared or ignored but never parsed: no EINVAL."""
    data = ue.open_data()
    assert data.register(f"{ue.name()} u32 a").errno == ""
    for fields in ("long a", "u32", "char[0] a", "struct s a 4294967295"):
        again = data.register(f"{ue.name()} {fields}")
        assert again.errno == ue.dated("arguments_matched", since="EADDRINUSE", before="")


@case(
    spec="user_field_set_string",
    profiles="6.4..",
    needs="arguments_matched struct_size_matched",
    tier="quick",
)
def test_struct_size_differs(ue: UserEvents) -> None:
    """The size of a struct is compared."""
    data = ue.open_data()
    assert data.register(f"{ue.name()} struct s a 20").errno == ""
    for again in ("struct s a 21", "struct s a 2", "struct s a"):
        assert data.register(f"{ue.name()} {again}").errno == "EADDRINUSE"
    # 20, with one more bit set above the low 16 and 24 bits.
    large = f"{ue.name('large')} struct s a 16842772"
    assert data.register(large).index == 1
    assert data.register(f"{ue.name('large')} struct s a 20").errno == "EADDRINUSE"
    assert data.register(large).index == 1


@case(
    level="detail",
    profiles="6.4..",
    needs="arguments_matched",
    switch="definition-differs-from-itself",
)
def test_differs_from_itself(ue: UserEvents) -> None:
    """A definition that is accepted matches its own text, however odd."""
    data, word, other = ue.open_data(), ue.process.word(), ue.process.word()
    for bit, (stem, fields) in enumerate(SELF_MISMATCHES.items()):
        assert data.register(ue.name(stem) + fields, word=word, bit=bit).errno == ""
        again = data.register(ue.name(stem) + fields, word=other, bit=bit)
        assert again.errno == ue.bug(
            "definition-differs-from-itself", fixed="", present="EADDRINUSE"
        )


@case
def test_canonical_form_registers_again(ue: UserEvents) -> None:
    """The text that dynamic_events shows for such a definition does match."""
    data = ue.open_data()
    for stem, (fields, _) in CANONICAL.items():
        assert data.register(ue.name(stem) + fields).errno == ""
    listed = ue.tracefs.dynamic_events().splitlines()
    assert listed == [f"u:{ue.name(stem)}{shown}" for stem, (_, shown) in CANONICAL.items()]
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    struct = ue.dated("struct_size_matched", since="", before=unlike)
    for line in listed:
        assert data.register(line.removeprefix("u:")).errno == (struct if "struct" in line else "")


@case(level="detail", tier="quick")
def test_refused_spacing_matches(ue: UserEvents) -> None:
    """A spacing that cannot create an event matches one that exists."""
    data = ue.open_data()
    assert data.register(f"{ue.name()} u32  a").errno == "EINVAL"
    assert data.register(f"{ue.name()} u32 a").index == 0
    assert data.register(f"{ue.name()} u32  a").index == 0


@case(spec="find_user_event")
def test_other_process_differs(ue: UserEvents) -> None:
    """All processes share one name space: a second one cannot register other fields."""
    ue.event("u32 a")
    other = ue.new_process().open_data()
    errno = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    assert other.register(f"{ue.name()} u64 a").errno == errno
    assert other.register(f"{ue.name()} u32 a").index == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
