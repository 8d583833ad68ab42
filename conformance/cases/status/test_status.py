"""user_events_status: tracers of each event, order of the lines, totals."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.status_text import whole_status

case = surface("status", spec="user_seq_show", level="contract", tier="full", isolation="global")


@case(doc="Status: the names come first, then a blank line, Active and Busy", tier="quick")
def test_nothing_registered(ue: UserEvents) -> None:
    """Without events the text is a blank line and totals of zero."""
    assert whole_status(ue) == "\nActive: 0\nBusy: 0\n"


@case
@doc("Status: `test` alone, Active: 1, Busy: 0;")
@doc("once ftrace uses it `test # Used by ftrace`, Busy: 1")
def test_documented_example(ue: UserEvents) -> None:
    """The text matches the documentation: idle, in use, and idle again."""
    ue.open_data().register("test u32 count")
    idle, busy = ue.status_line(1, "test"), ue.status_line(1, "test", "ftrace")
    assert whole_status(ue) == idle + "\nActive: 1\nBusy: 0\n"
    ue.tracefs.enable("test")
    assert whole_status(ue) == busy + "\nActive: 1\nBusy: 1\n"
    ue.tracefs.disable("test")
    assert whole_status(ue) == idle + "\nActive: 1\nBusy: 0\n"


@case(doc="Status: Active counts the registered events, Busy those in use", tier="quick")
@variants(
    ("one_idle", ("b",), (), "Active: 1\nBusy: 0"),
    ("two_idle", ("b", "c"), (), "Active: 2\nBusy: 0"),
    ("one_of_three", ("b", "c", "d"), ("c",), "Active: 3\nBusy: 1"),
    ("all_of_three", ("b", "c", "d"), ("b", "c", "d"), "Active: 3\nBusy: 3"),
    ("tens", "abcdefghijkl", "ab", "Active: 12\nBusy: 2"),
)
def test_totals(ue: UserEvents, names: tuple[str, ...], used: tuple[str, ...], totals: str) -> None:
    """Active is the number of events and Busy the number of those with a tracer."""
    ue.register(*names)
    for name in used:
        ue.tracefs.enable(name)
    lines, blank, shown = whole_status(ue).partition("\n\n")
    assert len(lines.splitlines()) == len(names)
    assert (blank, shown) == ("\n\n", totals + "\n")


@case(spec="user_seq_show; fs/seq_file.c:seq_read_iter", tier="quick")
@doc("Status: the file shows all registered events")
def test_more_than_a_page(ue: UserEvents) -> None:
    """A text of more than a page has the line of each event, and counts each once."""
    names = [letter * 240 for letter in "abcdefghijklmnopqrst"]
    ue.register(*names)
    lines, _, totals = whole_status(ue).partition("\n\n")
    wanted = [ue.status_line(number, name) for number, name in enumerate(names, 1)]
    assert sorted(f"{line}\n" for line in lines.splitlines()) == sorted(wanted)
    assert totals == "Active: 20\nBusy: 0\n"


@case(spec="find_user_event")
@doc("Status: the file shows each registered event once and counts it in Active")
def test_counted_once(ue: UserEvents) -> None:
    """An event that two processes registered on three descriptors is listed and counted once."""
    first, second = ue.open_data(), ue.open_data()
    first.register("shared u32 a")
    second.register("shared u32 a")
    ue.new_process().open_data().register("shared u32 a")
    assert whole_status(ue) == ue.status_line(1, "shared") + "\nActive: 1\nBusy: 0\n"


@case(needs="lasting_events")
@doc("Status: the file shows all registered events, and ` # Used by ftrace` and Busy while in use")
def test_persistent_counted(ue: UserEvents) -> None:
    """An event without registrations is listed and counted while it exists."""
    ue.tracefs.command("u:kept u32 a\n")
    assert whole_status(ue) == ue.status_line(1, "kept") + "\nActive: 1\nBusy: 0\n"
    ue.tracefs.enable("kept")
    assert whole_status(ue) == ue.status_line(1, "kept", "ftrace") + "\nActive: 1\nBusy: 1\n"
    ue.tracefs.disable("kept")
    ue.tracefs.command("-:kept u32 a\n")
    assert whole_status(ue) == "\nActive: 0\nBusy: 0\n"


def cut(*lengths: int) -> str:
    """Names of these lengths, separated by spaces."""
    return " ".join("abcdefghijklmnopqrstuvwxyz0123456789"[:length] for length in lengths)


@case(doc="Status: a line for each event; silent about their order", level="detail")
@spec("user_seq_show (hash_for_each), user_event_key; include/linux/jhash.h:jhash")
@variants(
    ("short", "test test2 a __test_event", "__test_event a test2 test", ""),
    ("short_reversed", "__test_event a test2 test", "__test_event a test2 test", ""),
    # Lengths around the 12 bytes that jhash() consumes at a time.
    (
        "lengths",
        cut(2, 4, 12, 13, 24, 25, 36),
        cut(24, 25, 36, 2, 4, 12, 13),
        cut(25, 24, 36, 4, 2, 12, 13),
    ),
    ("same_bucket", "test testnl testqw testyv", "testyv testqw testnl test", ""),
    ("same_bucket_other_lengths", cut(13, 11), cut(11, 13), ""),
    ("not_ascii", "abc é ab", "é ab abc", ""),
)
def test_hash_order(ue: UserEvents, created: str, shown: str, of_16_buckets: str) -> None:
    """Lines are in the order of hash buckets, newest first within a bucket."""
    data, names = ue.open_data(), created.split()
    for name in names:
        data.register(name)
    # Where 16 buckets instead of 256 make no difference, the table has one entry.
    fewer = of_16_buckets or shown
    order = {"byte-status": fewer, "bit-status": shown, "remote-enable": shown}
    found = order[ue.profile.generation].split()
    lines = [ue.status_line(names.index(name) + 1, name) for name in found]
    assert whole_status(ue).partition("\nActive")[0] == "".join(lines)


@case(spec="user_seq_show, update_enable_bit_for", isolation="events")
@doc("Status: `# Used by ftrace` follows the name while ftrace has the event enabled")
def test_used_by_ftrace(ue: UserEvents) -> None:
    """Only the line of the event that ftrace has enabled names ftrace."""
    ue.register(idle="", busy="")
    ue.tracefs.enable(ue.name("busy"))
    idle, busy = ue.status_line(1, ue.name("idle")), ue.status_line(2, ue.name("busy"), "ftrace")
    assert sorted(ue.tracefs.status().splitlines(keepends=True)) == sorted([idle, busy])
    ue.tracefs.disable(ue.name("busy"))
    unused = ue.status_line(2, ue.name("busy"))
    assert sorted(ue.tracefs.status().splitlines(keepends=True)) == sorted([idle, unused])


@case(doc="Status: silent about enabling what is enabled", level="detail", isolation="events")
@spec("trace_events.c:__ftrace_event_enable_disable; trace_events_user.c:user_event_reg")
def test_enabled_twice(ue: UserEvents) -> None:
    """Enabling an enabled event changes nothing: one disable ends the use."""
    event = ue.event(enabled=True)
    event.enable()
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    event.disable()
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(level="behaviour", tier="quick", isolation="events")
@doc("Status: a line is the name and a comment; silent about characters of names")
@variants(
    ("fields", " u32 a; char[20] b", ""),
    ("struct", " struct s a 20", ""),
    ("semicolon_in_name", ";x u32 a", ";x"),
    ("hash_in_name", "#x", "#x"),
    ("percent_in_name", "%d%s", "%d%s"),
    ("tab_in_name", "\tx", "\tx"),
    ("not_ascii", "\u00fc\u2211", "\u00fc\u2211"),
)
def test_shows_the_name_alone(ue: UserEvents, rest: str, shown: str) -> None:
    """A line contains the bytes of the name unchanged, and no fields."""
    assert ue.open_data().register(ue.name() + rest).value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name() + shown)
