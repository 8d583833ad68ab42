"""Registration strings: types, sizes and separators, by ioctl and by dynamic_events.

Every definition of fixtures/definitions.toml goes through DIAG_IOCSREG and through dynamic_events.
"""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.definition_corpus import Group, load_definitions

DOC = "Overview: dynamic_events takes the format of the ioctl after u:; silent about its limits"
case = surface("grammar", spec="user_event_parse_field", doc=DOC, level="behaviour")

ACCEPTED = load_definitions("accepted")
REFUSED = load_definitions("refused")


@case
@doc("Field Format: silent about limits and the full list of types;")
@doc("type, name, and a size for structs")
@variants(ACCEPTED)
def test_ioctl_accepts(ue: UserEvents, group: Group) -> None:
    """Definitions register through the ioctl and are listed in their canonical form."""
    data, word = ue.open_data(), ue.process.word(8)
    for bit, (stem, definition) in enumerate(group.items()):
        assert data.register(definition.text(ue.name(stem)), word=word, bit=bit).errno == ""
    listed = [definition.line(ue.name(stem)) for stem, definition in group.items()]
    assert ue.tracefs.dynamic_events().splitlines(keepends=True) == listed


@case(needs="lasting_events")
@variants(ACCEPTED)
def test_dynamic_events_accepts(ue: UserEvents, group: Group) -> None:
    """The same definitions are created through dynamic_events and listed the same way."""
    # They are deleted by name, since not every definition matches its own text.
    for stem, definition in group.items():
        assert ue.tracefs.command(f"u:{definition.text(ue.name(stem))}\n").errno == ""
    listed = [definition.line(ue.name(stem)) for stem, definition in group.items()]
    assert ue.tracefs.dynamic_events().splitlines(keepends=True) == listed
    data = ue.open_data()
    for stem in group:
        assert data.delete(ue.name(stem)).value == 0


@case
@doc("Field Format: long is no type, only structs have a size;")
@doc("silent about the error and all other texts")
@variants(REFUSED)
def test_ioctl_refuses(ue: UserEvents, group: Group) -> None:
    """The ioctl rejects a malformed definition and does not change the write index."""
    data, word = ue.open_data(), ue.process.word()
    for stem, definition in group.items():
        event = data.register(definition.text(ue.name(stem)), word=word)
        assert event.errno == definition.literal
        assert event.index == 0xFFFFFFFF


@case(needs="lasting_events")
@variants(REFUSED, quick=2)
def test_dynamic_events_refuses(ue: UserEvents, group: Group) -> None:
    """dynamic_events rejects a malformed definition, too, and lists nothing."""
    for stem, definition in group.items():
        created = ue.tracefs.command(f"u:{definition.text(ue.name(stem))}\n")
        assert created.errno == definition.literal
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_field_size", level="contract")
@doc("Field Format: long is not supported, since its size differs between user and kernel")
def test_long_is_no_type(ue: UserEvents) -> None:
    """A field of type long is rejected, signed or not, and no event is created."""
    data = ue.open_data()
    assert data.register(f"{ue.name()} long a").errno == "EINVAL"
    assert data.register(f"{ue.name()} u32 a; unsigned long b").errno == "EINVAL"
    assert ue.tracefs.dynamic_events() == ""
    assert data.register(f"{ue.name()} u64 a").index == 0


@case(level="contract", doc="Field Format: the size is only valid for types that start with struct")
def test_size_of_structs_only(ue: UserEvents) -> None:
    """A size after the name of a field is rejected unless its type is a struct."""
    data = ue.open_data()
    for field in ("u32 a 4", "char[20] a 20", "__data_loc char[] a 4"):
        assert data.register(f"{ue.name()} {field}").errno == "EINVAL"
    assert data.register(f"{ue.name()} struct s a 4").index == 0


@case(doc="Field Format: silent about newlines and comments")
@variants(
    ("newline-between-fields", " u32 a;\nu64 b", " u32 a; u64 b"),
    ("newline-behind-size", " struct s a 20\n", " struct s a 20"),
    ("hash-in-field", " u32 a#b", " u32 a#b"),
    ("hash-behind-space", " u32 # a", None),
    ("hash-in-name", "#b u32 a", "#b u32 a"),
)
def test_ioctl_only(ue: UserEvents, text: str, line: str | None) -> None:
    """For the ioctl a newline is white space, and # starts no comment."""
    event = ue.open_data().register(ue.name() + text)
    if line is None:
        assert event.errno == "EINVAL"
        return
    assert event.errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}{line}\n"


@case(spec="trace.c:trace_parse_run_command", level="detail", needs="lasting_events")
@doc("Overview: silent about white space and comments")
@variants(
    ("space-behind-prefix", "u: ", " u32 a", " u32 a"),
    ("tabs-behind-prefix", "u:\t\t", " u32 a", " u32 a"),
    ("no-newline", "u:", " u32 a", " u32 a"),
    ("comment-in-name", "u:", "#b u32 a\n", ""),
    ("comment-behind-semicolon", "u:", " u32 a;# u64 b\n", " u32 a"),
    ("comment-behind-name", "u:", " u32 a#b\n", " u32 a"),
)
def test_dynamic_events_only(ue: UserEvents, before: str, after: str, line: str) -> None:
    """dynamic_events skips white space after the prefix and cuts a line at #."""
    assert ue.tracefs.command(before + ue.name() + after).errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}{line}\n"


@case(spec="trace.c:trace_parse_run_command", level="detail", needs="lasting_events")
@doc("Overview: silent about white space and comments")
def test_comment_leaves_a_space(ue: UserEvents) -> None:
    """The space before a comment becomes part of the field, which is rejected for it."""
    assert ue.tracefs.command(f"u:{ue.name()} u32 a # b\n").errno == "EINVAL"


@case(spec="user_events_ioctl_reg: MAX_EVENT_DESC")
@doc("Registering: name_args points to the text; silent about its length")
@variants((511, ""), (512, "EINVAL"), (4000, "EINVAL"))
def test_ioctl_longest_text(ue: UserEvents, length: int, errno: str) -> None:
    """The ioctl takes at most 511 bytes of text, the name included."""
    text = f"{ue.name()} u32 a"
    text += "a" * (length - len(text))
    assert ue.open_data().register(text).errno == errno
    assert len(ue.tracefs.dynamic_events()) == {"": 514, "EINVAL": 0}[errno]


@case(spec="user_events_ioctl_reg: MAX_EVENT_DESC")
@doc("Command Format: silent about the length of a name")
@variants(255, 256, 511)
def test_ioctl_longest_name(ue: UserEvents, length: int) -> None:
    """The name may take up the whole text, longer than any file name."""
    name = ue.name("n" * (length - len(ue.name(""))))
    assert ue.open_data().register(name).errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{name}\n"


@case(spec="user_event_create", needs="lasting_events")
@variants(512, 3000)
def test_dynamic_events_longer_text(ue: UserEvents, length: int) -> None:
    """dynamic_events accepts longer definitions than the ioctl."""
    text = f"{ue.name()} u32 a"
    text += "a" * (length - len(text))
    assert ue.tracefs.command(f"u:{text}\n").errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{text}\n"


@case(spec="user_events_ioctl_reg: MAX_EVENT_DESC", needs="lasting_events")
def test_longer_text_registers_again(ue: UserEvents) -> None:
    """An event too long for the ioctl cannot be registered: EINVAL for the same text."""
    text = f"{ue.name()} u32 {'a' * 600}"
    assert ue.tracefs.command(f"u:{text}\n").errno == ""
    assert ue.open_data().register(text).errno == "EINVAL"


@case(spec="user_event_parse_fields")
@doc("Command Format: fields separated by semicolons; silent about their number")
def test_many_fields(ue: UserEvents) -> None:
    """An event can have as many fields as fit into the text, listed in order."""
    names = "abcdefghijklmnopqrstuvwxyz"
    text = ue.name() + " " + ";".join(f"u8 {first}" for first in names * 3)
    assert ue.open_data().register(text).errno == ""
    line = ue.tracefs.dynamic_events()
    assert line.count("; ") == 77
    assert line.endswith("; u8 x; u8 y; u8 z\n")


@case(profiles="6.4..", needs="lasting_events unspaced_fields_match", tier="full")
@spec("user_event_parse_fields, user_fields_match")
def test_dynamic_events_many_fields(ue: UserEvents) -> None:
    """dynamic_events accepts 300 fields, lists them all, and matches the event by them."""
    fields = "; ".join(f"u8 f{number}" for number in range(300))
    assert ue.tracefs.command(f"u:{ue.name()} {fields}\n").errno == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} {fields}\n"
    assert ue.tracefs.command(f"-:{ue.name()} {fields.replace('f299', 'f300')}\n").errno == "ENOENT"
    assert ue.tracefs.command(f"-:{ue.name()} {fields}\n").errno == ""


# Value and errno where the size is returned as if it were an errno.
HUGE_SIZES = {
    "4294967295": (-1, "EPERM"),
    "4294967294": (-1, "ENOENT"),
    "4294967284": (-1, "ENOMEM"),
    "4294967274": (-1, "EINVAL"),
    "4294967198": (-1, "EADDRINUSE"),
    "4294963200": (-4096, ""),
    "2147483648": (-2147483648, ""),
}


@case(level="detail", switch="struct-size-errno")
@doc("Field Format: structs have a size; silent about the largest")
def test_ioctl_huge_struct(ue: UserEvents) -> None:
    """A struct of 2^31 bytes or more is EINVAL."""
    data, word = ue.open_data(), ue.process.word()
    for size, negative in HUGE_SIZES.items():
        returned = ue.bug("struct-size-errno", fixed=(-1, "EINVAL"), present=negative)
        event = data.register(f"{ue.name()} struct s a {size}", word=word)
        assert (event.value, event.errno) == returned
        assert event.index == 0xFFFFFFFF


@case(level="detail", needs="lasting_events", tier="full", bug="struct-size-errno")
@doc("Field Format: structs have a size; silent about the largest")
def test_dynamic_events_huge_struct(ue: UserEvents) -> None:
    """In dynamic_events a struct of 2^31 bytes or more is EINVAL, too."""
    for size, negative in HUGE_SIZES.items():
        returned = ue.bug("struct-size-errno", fixed=(-1, "EINVAL"), present=negative)
        created = ue.tracefs.command(f"u:{ue.name()} struct s a {size}\n")
        assert (created.value, created.errno) == returned
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_event_parse_fields", level="detail", bug="struct-size-errno")
@doc("Field Format: silent about which of two errors is reported")
@variants(
    ("size-then-type", "struct s a 4294967295;long b", "EPERM"),
    ("type-then-size", "long b;struct s a 4294967295", "EINVAL"),
    ("good-then-size", "u32 b;struct s a 4294967294", "ENOENT"),
)
def test_first_failure_counts(ue: UserEvents, fields: str, errno: str) -> None:
    """Fields are parsed in order, and the first invalid one decides the error."""
    errno = ue.bug("struct-size-errno", fixed="EINVAL", present=errno)
    assert ue.open_data().register(f"{ue.name()} {fields}").errno == errno


@case(spec="user_event_parse", tier="full")
@doc("Registering: write_index is set on success; silent about what a failure leaves")
def test_refused_leaves_nothing(ue: UserEvents) -> None:
    """After a rejected registration the name and the write index are free as before."""
    data, word = ue.open_data(), ue.process.word()
    assert data.register(f"{ue.name()} u32 a;long b", word=word).errno == "EINVAL"
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"
    assert data.register(f"{ue.name()} u64 c", word=word).index == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u64 c\n"
