"""USER_EVENT_REG_MULTI_FORMAT: several formats of one name, each with its own tracepoint.

The ids in the tracepoint names come from a system-wide counter: cases compare the part before the
id, and differences of ids.
"""

import re
from itertools import pairwise

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.registration import MULTI_FORMAT
from conformance.cases.support.status_text import tracepoints, unique_id
from conformance.client.caller import Word
from conformance.client.tracefs import MULTI_SYSTEM

SPEC = "user_event_set_tp_name"
DOC = "Registering: a tracepoint is created for each unique pair of name and format"
NEEDS = "multi_format persist arguments_matched"
UNIQUE_ID = "Registering: the tracepoint of a format is name.unique_id, the id in hexadecimal"
SAME_FORMAT = "Registering: processes that use the same name and format use the same tracepoint"
SYSTEMS = "Registering: the two systems keep single-format names apart from multi-format ones"
case = surface(
    "multi_format", SPEC, DOC, level="behaviour", profiles="6.4..", needs=NEEDS, tier="full"
)


def _ids(ue: UserEvents) -> list[int]:
    """Ids of the case's own tracepoints, in order of creation."""
    return sorted(map(unique_id, tracepoints(ue)))


@case(doc=UNIQUE_ID, level="contract", tier="quick")
@variants(
    ("plain", "{}", "{}"),
    ("with_fields", "{} u32 a; char[20] b", "{}"),
    ("dot_in_name", "{}.a u32 a", "{}.a"),
    ("id_like_name", "{}.1f", "{}.1f"),
    ("long", f"{{}}{'n' * 490}", f"{{}}{'n' * 490}"),
)
def test_name(ue: UserEvents, definition: str, stem: str) -> None:
    """The tracepoint name is the registered name, a dot, and a hexadecimal id."""
    event = ue.open_data().register(definition.format(ue.name()), flags=MULTI_FORMAT)
    assert (event.value, event.index) == (0, 0)
    before, _, number = ue.tracefs.status().rpartition(".")
    assert before == stem.format(ue.name())
    assert re.fullmatch(r"(0|[1-9a-f][0-9a-f]*)\n", number)


@case(doc=UNIQUE_ID, level="contract", tier="quick")
def test_ids_are_hexadecimal(ue: UserEvents) -> None:
    """The names of 16 formats in a row end in the 16 hexadecimal digits."""
    data = ue.open_data()
    for number in range(16):
        data.register(f"{ue.name()} u8 f{number}", flags=MULTI_FORMAT)
    assert sorted(name[-1] for name in tracepoints(ue)) == list("0123456789abcdef")


@case(level="contract", tier="quick")
@doc("Registering: the system of multi-format events is user_events_multi")
def test_system(ue: UserEvents) -> None:
    """The tracepoint is below events/user_events_multi, and not below events/user_events."""
    ue.event("u32 a", flags=MULTI_FORMAT)
    (tracepoint,) = tracepoints(ue)
    assert ue.tracefs.enabled(tracepoint, system="user_events_multi").text == "0\n"
    assert ue.tracefs.enabled(tracepoint).errno == "ENOENT"
    assert ue.tracefs.enabled(ue.name(), system="user_events_multi").errno == "ENOENT"
    shown = ue.tracefs.format(tracepoint, system="user_events_multi")
    assert shown.startswith("name: " + tracepoint + "\n")


@case(spec="find_user_event", tier="quick")
@doc("Registering: a tracepoint for each pair of name and format, with a unique id;")
@doc("silent about its value")
@variants(
    ("types", " u32 a", " u64 a"),
    ("same_layout", " int a", " s32 a"),
    ("names", " u32 a", " u32 b"),
    ("order", " u32 a; u64 b", " u64 b; u32 a"),
    ("one_more", " u32 a", " u32 a; u32 b"),
    ("none", "", " u32 a"),
    ("struct_size", " struct s a 4", " struct s a 8"),
    ("array_spelling", " char[16] a", " char[0x10] a"),
    quick=2,
)
def test_two_formats(ue: UserEvents, first: str, second: str) -> None:
    """Other fields under the same name are another event, with the next id."""
    data = ue.open_data()
    assert data.register(ue.name() + first, flags=MULTI_FORMAT).index == 0
    assert data.register(ue.name() + second, flags=MULTI_FORMAT).index == 1
    older, newer = _ids(ue)
    assert newer - older == 1


@case(spec="find_user_event", level="contract", tier="quick")
def test_many(ue: UserEvents) -> None:
    """257 formats of a name are as many events, each with its own index, and all match again."""
    data, words = ue.open_data(), ue.process.map()
    for number in range(257):
        word = Word(ue.process, words + 4 * number)
        seen = data.register(f"{ue.name()} u8 f{number}", flags=MULTI_FORMAT, word=word)
        assert seen.index == number
    assert len(set(tracepoints(ue))) == 257
    oldest, newest = f"{ue.name()} u8 f0", f"{ue.name()} u8 f256"
    other = ue.process.word()
    assert data.register(oldest, flags=MULTI_FORMAT, word=other, bit=0).index == 0
    assert data.register(newest, flags=MULTI_FORMAT, word=other, bit=1).index == 256


@case(spec="find_user_event")
@doc("Registering: the same name and format share a tracepoint;")
@doc("silent about when two formats are the same")
@variants(
    ("same_text", " u32 a; u64 b", " u32 a; u64 b"),
    ("semicolon", " u32 a", " u32 a;"),
    ("no_fields", "", " "),
)
def test_shared(ue: UserEvents, first: str, second: str) -> None:
    """Equal fields under the same name are the same event, for every descriptor."""
    data = ue.open_data()
    data.register(ue.name() + first, flags=MULTI_FORMAT)
    assert data.register(ue.name() + second, flags=MULTI_FORMAT).index == 0
    assert ue.new_process().open_data().register(ue.name() + second, flags=MULTI_FORMAT).index == 0
    assert len(tracepoints(ue)) == 1


@case(spec="find_user_event", tier="quick")
@doc("Registering: the same name and format share a tracepoint;")
@doc("silent about when two formats are the same")
def test_shared_unspaced(ue: UserEvents) -> None:
    """A space after the semicolon makes no other format; before 6.10 it did."""
    data = ue.event("u32 a; u64 b", flags=MULTI_FORMAT).data
    again = data.register(ue.name() + " u32 a;u64 b", flags=MULTI_FORMAT)
    assert again.index == ue.dated("unspaced_fields_match", since=0, before=1)


@case(spec="user_field_set_string", doc=SAME_FORMAT, level="contract")
def test_shared_struct(ue: UserEvents) -> None:
    """A format with a struct matches again, including the size of the struct."""
    data = ue.open_data()
    assert data.register(ue.name() + " struct s a 20; u8 b", flags=MULTI_FORMAT).index == 0
    assert data.register(ue.name() + " struct s a 21; u8 b", flags=MULTI_FORMAT).index == 1
    assert data.register(ue.name() + " struct s a 20; u8 b", flags=MULTI_FORMAT).index == 0


@case(spec="find_user_event: strcmp after the hash", level="contract", isolation="global")
def test_same_bucket(ue: UserEvents) -> None:
    """Names in one bucket of the hash table have separate formats, equal or not."""
    data = ue.open_data()
    assert data.register("test u32 a", flags=MULTI_FORMAT).index == 0
    assert data.register("testqw u32 a", flags=MULTI_FORMAT).index == 1
    assert data.register("test u32 a", flags=MULTI_FORMAT).index == 0
    assert ue.tracefs.dynamic_events(whole=True) == "u:test u32 a\nu:testqw u32 a\n"


@case(spec="find_user_event", doc=SAME_FORMAT, level="contract")
@variants(("oldest", " u32 a", 0), ("middle", " u64 a", 1), ("newest", " u8 a", 2))
def test_found_among_several(ue: UserEvents, again: str, index: int) -> None:
    """Every format of a name matches again."""
    data = ue.open_data()
    for fields in (" u32 a", " u64 a", " u8 a"):
        data.register(ue.name() + fields, flags=MULTI_FORMAT)
    assert data.register(ue.name() + again, flags=MULTI_FORMAT).index == index


@case(spec="find_user_event", doc=SYSTEMS, level="contract")
@variants(("single_first", 0, 2), ("multi_first", 2, 0))
def test_beside_single(ue: UserEvents, first: int, second: int) -> None:
    """A single-format and a multi-format event of one name are two, even with equal fields."""
    data = ue.open_data()
    assert data.register(ue.name() + " u32 a", flags=first).index == 0
    assert data.register(ue.name() + " u32 a", flags=second).index == 1
    assert sorted(name.removeprefix(ue.name())[:1] for name in tracepoints(ue)) == ["", "."]
    assert ue.tracefs.dynamic_events() == ("u:" + ue.name() + " u32 a\n") * 2


@case(spec="find_user_event")
@doc("Registering: without the flag a program whose format changes is blocked;")
@doc("silent about the error")
def test_single_stays_single(ue: UserEvents) -> None:
    """Several formats of a name do not allow the single-format event to have other fields."""
    data = ue.event("u32 a", flags=MULTI_FORMAT).data
    data.register(ue.name() + " u64 a")
    assert data.register(ue.name() + " u32 a").errno == "EADDRINUSE"
    assert data.register(ue.name() + " u8 a", flags=MULTI_FORMAT).errno == ""


@case(spec="find_user_event", doc=SYSTEMS, level="contract", tier="quick")
def test_name_of_a_tracepoint(ue: UserEvents) -> None:
    """The full name of a tracepoint is a free name for a single-format event."""
    data = ue.event("u32 a", flags=MULTI_FORMAT).data
    (tracepoint,) = tracepoints(ue)
    assert data.register(tracepoint + " u64 b").index == 1
    assert ue.tracefs.enabled(tracepoint).text == "0\n"


@case(
    level="detail", needs="multi_format persist arguments_matched text_flags_refused", tier="quick"
)
@doc("Registering: the id is unique; silent about its value")
@variants(
    # The name with its id is created before the fields are parsed.
    ("bad_field", "{} long x", "EINVAL", 2),
    ("bad_field_other_name", "{}x u32", "EINVAL", 2),
    ("text_flags", "{}:flag u32 x", "EINVAL", 1),
    ("existing", "{} u32 a", "", 1),
    ("too_long", "{}" + "x" * 512, "EINVAL", 1),
)
def test_ids_of_failures(ue: UserEvents, between: str, errno: str, distance: int) -> None:
    """A new format that fails to parse uses an id; a registration that creates nothing does not."""
    data = ue.event("u32 a", flags=MULTI_FORMAT).data
    assert data.register(between.format(ue.name()), flags=MULTI_FORMAT).errno == errno
    data.register(ue.name() + " u64 a", flags=MULTI_FORMAT)
    older, newer = _ids(ue)
    assert newer - older == distance


@case(doc="Registering: the id is unique; silent about its value", level="detail")
def test_ids_of_all_names(ue: UserEvents) -> None:
    """All names take their ids from one counter; single-format events take none."""
    data = ue.event(name="a", flags=MULTI_FORMAT).data
    data.register(ue.name("b"))
    data.register(ue.name("c"), flags=MULTI_FORMAT)
    data.register(ue.name("a") + " u32 x", flags=MULTI_FORMAT)
    ids = sorted(unique_id(name) for name in tracepoints(ue) if "." in name)
    assert [newer - older for older, newer in pairwise(ids)] == [1, 1]


@case(needs="multi_format persist arguments_matched auto_delete")
@doc("Registering: the id is unique; silent about ids of deleted events")
def test_id_not_reused(ue: UserEvents) -> None:
    """The same name and fields get a new id after the event was deleted."""
    data, other = ue.open_data(), ue.open_data()
    event = data.register(ue.name() + " u32 a", flags=MULTI_FORMAT)
    (first,) = _ids(ue)
    data.unregister(event.word)
    data.close()
    assert ue.tracefs.status(eventually=True) == ""
    other.register(ue.name() + " u32 a", flags=MULTI_FORMAT)
    (second,) = _ids(ue)
    assert second - first == 1


@case(spec="user_seq_show", level="detail", tier="quick")
@doc("Status: a line for each event; silent about their order")
def test_status_order(ue: UserEvents) -> None:
    """Status lists the formats of a name newest first, with the single-format event among them."""
    data = ue.event("u32 a", flags=MULTI_FORMAT).data
    data.register(ue.name() + " u32 a")
    data.register(ue.name() + " u64 a", flags=MULTI_FORMAT)
    newest, single, oldest = tracepoints(ue)
    assert single == ue.name()
    assert int(newest.rpartition(".")[2], 16) - int(oldest.rpartition(".")[2], 16) == 1


@case(spec="user_event_show", tier="quick")
@doc("Overview: dynamic_events takes the format of the ioctl; silent about what it shows")
def test_shown(ue: UserEvents) -> None:
    """dynamic_events lists every format in order of creation, by its name without the id."""
    data = ue.open_data()
    for fields in (" u64 b", "", " struct s x 5"):
        data.register(ue.name() + fields, flags=MULTI_FORMAT)
    shown = ue.tracefs.dynamic_events().replace(ue.name(), "NAME")
    assert shown == "u:NAME u64 b\nu:NAME\nu:NAME struct s x 5\n"


@case(spec="user_event_reg")
@doc("Registering: each format is a tracepoint of its own; silent about the order of status")
def test_enabled_one_by_one(ue: UserEvents) -> None:
    """Each format has its own enable word, status and `enable` file."""
    data = ue.open_data()
    first = data.register(ue.name() + " u32 a", flags=MULTI_FORMAT)
    second = data.register(ue.name() + " u64 a", flags=MULTI_FORMAT)
    newer, older = tracepoints(ue)
    ue.tracefs.enable(newer, system=MULTI_SYSTEM)
    assert (first.word.value, second.word.value) == (0, 1)
    assert ue.tracefs.status() == newer + " # Used by ftrace\n" + older + "\n"
    ue.tracefs.disable(newer, system=MULTI_SYSTEM)
    assert (first.word.value, second.word.value) == (0, 0)


@case(spec="user_event_enabler_update: words of the event alone", tier="quick")
@doc("Status: the bit is updated on attach and detach; silent about values that the program stores")
def test_not_restored_by_another(ue: UserEvents) -> None:
    """A value that the process stores in the word of a format stays when another one changes."""
    data = ue.open_data()
    word = data.register(ue.name() + " u32 a", flags=MULTI_FORMAT).word
    other = data.register(ue.name() + " u64 a", flags=MULTI_FORMAT, bit=2).word
    newer, older = tracepoints(ue)
    ue.tracefs.enable(older, system=MULTI_SYSTEM)
    ue.process.store(word.address, b"\0\0\0\0")
    ue.tracefs.enable(newer, system=MULTI_SYSTEM)
    assert (word.value, other.value) == (0, 4)
    ue.tracefs.disable(newer, system=MULTI_SYSTEM)
    assert (word.value, other.value) == (0, 0)


@case(spec="trace_output.c:print_event_fields", level="detail", tier="quick", isolation="global")
@doc("Registering: each format is a tracepoint of its own; silent about how ftrace prints it")
def test_records(ue: UserEvents) -> None:
    """A write to a format is recorded under its tracepoint, with its fields."""
    data = ue.event("u32 a", flags=MULTI_FORMAT).data
    second = data.register(ue.name() + " u16 b", flags=MULTI_FORMAT)
    newer, _ = tracepoints(ue)
    ue.tracefs.clear_trace()
    ue.tracefs.enable(newer, system=MULTI_SYSTEM)
    while_disabled = data.write_event(0, bytes(4))
    assert while_disabled.errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(second.index, b"\x05\0").value == 6
    assert [line.removeprefix(newer) for line in ue.tracefs.records()] == [": b=0x5 (5)"]


@case(level="contract", needs="multi_format persist arguments_matched auto_delete")
@spec("user_event_put")
@doc("Deleting: by default an event is deleted when no references are left")
def test_goes_alone(ue: UserEvents) -> None:
    """A format is deleted with its last reference; the other formats of the name stay."""
    first, second = ue.open_data(), ue.open_data()
    event = first.register(ue.name() + " u32 a", flags=MULTI_FORMAT)
    second.register(ue.name() + " u64 a", flags=MULTI_FORMAT)
    first.unregister(event.word)
    first.close()
    assert ue.tracefs.dynamic_events(eventually=True) == "u:" + ue.name() + " u64 a\n"


@case(level="contract", needs="multi_format persist arguments_matched auto_delete")
@spec("user_event_reg, user_event_put")
@doc("Deleting: by default an event is deleted when no references are left")
def test_goes_with_its_tracer(ue: UserEvents) -> None:
    """A format held only by its tracer is deleted when it is disabled."""
    # Its reference is dropped last: once it is gone, only the tracer holds the format.
    ue.open_data().register(ue.name("first"))
    ue.event("u32 a", flags=MULTI_FORMAT)
    tracepoint, _ = sorted(tracepoints(ue))
    ue.tracefs.enable(tracepoint, system=MULTI_SYSTEM)
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == f"{tracepoint} # Used by ftrace\n"
    ue.tracefs.disable(tracepoint, system=MULTI_SYSTEM)
    assert ue.tracefs.status(eventually=True) == ""
