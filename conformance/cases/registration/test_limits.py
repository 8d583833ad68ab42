"""kernel.user_events_max: accepted values, what counts, and when it is checked."""

from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.registration import MULTI_FORMAT, PERSIST, error_of
from conformance.cases.support.status_text import tracepoints, unique_id
from conformance.cases.support.tracefs_permissions import USER
from conformance.client.caller import Word
from conformance.client.credentials import Credentials
from conformance.client.tracefs import MAXIMUM, MULTI_SYSTEM

SPEC = "user_event_parse (current_user_events)"
DOC = "nothing is said of a limit of events"
case = surface("limits", SPEC, DOC, level="behaviour", profiles="6.4..", isolation="global")

DEFAULT = "32768\n"


@case(spec="kernel/sysctl.c:proc_douintvec, proc_get_long", level="detail", tier="quick")
@variants(
    ("negative", "-1\n", "EINVAL", DEFAULT),
    ("none", "0\n", "", "0\n"),
    ("negative-zero", "-0\n", "EINVAL", DEFAULT),
    ("most", "4294967295\n", "", "4294967295\n"),
    ("too-much", "4294967296\n", "EINVAL", DEFAULT),
    ("no-newline", "5", "", "5\n"),
    ("hexadecimal", "0x10\n", "", "16\n"),
    ("hexadecimal-capital", "0X10\n", "", "16\n"),
    ("octal", "010\n", "", "8\n"),
    ("no-octal", "08\n", "EINVAL", DEFAULT),
    ("prefix-alone", "0x\n", "EINVAL", DEFAULT),
    ("spaces", " \t\n 7 \n", "", "7\n"),
    ("garbage", "7events\n", "EINVAL", DEFAULT),
    ("comma", "7,8\n", "EINVAL", DEFAULT),
    ("plus", "+7\n", "EINVAL", DEFAULT),
    ("word", "unlimited\n", "EINVAL", DEFAULT),
    ("space-alone", " \n", "EINVAL", DEFAULT),
    ("empty", "", "", DEFAULT),
    ("longest", "00000000000000000007\n", "", "7\n"),
    ("too-long", "000000000000000000007\n", "EINVAL", DEFAULT),
    ("nul", "7\0", "EINVAL", DEFAULT),
)
def test_accepted(ue: UserEvents, text: str, errno: str, shown: str) -> None:
    """The limit is an unsigned 32-bit number, parsed like any sysctl; all other text is EINVAL."""
    assert ue.tracefs.write(MAXIMUM, text).errno == errno
    assert ue.tracefs.read(MAXIMUM).text == shown


@case(spec="max_user_events", profiles="5.18..6.3", tier="quick")
def test_no_sysctl(ue: UserEvents) -> None:
    """A kernel with a status page has no kernel.user_events_max: its page is the limit."""
    assert ue.tracefs.read(MAXIMUM).errno == "ENOENT"
    assert ue.tracefs.write(MAXIMUM, "1\n").errno == "ENOENT"


@case
def test_shared(ue: UserEvents) -> None:
    """There is one limit for all users: events of one user leave no room for another's."""
    mine = ue.open_data()
    process = ue.new_process()
    theirs = process.open_data()
    Credentials(process).become(USER)
    assert mine.register(ue.name("mine")).errno == ""
    ue.tracefs.write(MAXIMUM, "1\n")
    assert theirs.register(ue.name("theirs")).errno == "EMFILE"
    assert theirs.register(ue.name("mine")).errno == ""


@case(spec="destroy_user_event (current_user_events)", needs="auto_delete", tier="full")
def test_room_again(ue: UserEvents) -> None:
    """An auto-deleted event makes room for another as soon as it is gone."""
    ue.tracefs.write(MAXIMUM, "1\n")
    process = ue.new_process()
    process.open_data().register(ue.name("old"))
    data = ue.open_data()
    assert data.register(ue.name("new")).errno == "EMFILE"
    process.exit()
    assert ue.tracefs.status(eventually=True) == ""
    assert data.register(ue.name("new")).errno == ""


@case(spec="destroy_user_event (current_user_events)", needs="persist")
@variants("ioctl", "command")
def test_room_by_deletion(ue: UserEvents, way: str) -> None:
    """A deleted event makes room for another at once."""
    ue.tracefs.command(f"u:{ue.name('old')}\n")
    ue.tracefs.write(MAXIMUM, "1\n")
    data = ue.open_data()
    assert data.register(ue.name("new"), flags=PERSIST).errno == "EMFILE"
    if way == "ioctl":
        data.delete(ue.name("old"))
    else:
        ue.tracefs.command(f"-:{ue.name('old')}\n")
    assert data.register(ue.name("new")).errno == ""


@case(spec="destroy_user_event (current_user_events)", needs="multi_format persist auto_delete")
def test_room_of_formats(ue: UserEvents) -> None:
    """A format makes room for another when it is deleted, by request or automatically."""
    process = ue.new_process()
    process.open_data().register(f"{ue.name()} u8 a", flags=MULTI_FORMAT)
    data = ue.open_data()
    data.register(f"{ue.name()} u16 a", flags=MULTI_FORMAT | PERSIST, enable_addr=0)
    data.close()
    process.exit()
    assert ue.tracefs.dynamic_events(eventually=True) == f"u:{ue.name()} u16 a\n"
    data = ue.open_data()
    data.delete(ue.name())
    ue.tracefs.write(MAXIMUM, "1\n")
    assert data.register(f"{ue.name()} u32 a", flags=MULTI_FORMAT).errno == ""


@case(tier="full")
@variants({"none": "0\n", "fewer": "1\n"})
def test_below(ue: UserEvents, limit: str) -> None:
    """A limit below the current number removes nothing: events stay, match, and are written."""
    data = ue.register(one="", two="")
    ue.tracefs.write(MAXIMUM, limit)
    assert data.register(ue.name("three")).errno == "EMFILE"
    assert data.register(ue.name("two")).index == 1
    ue.tracefs.enable(ue.name("two"))
    assert data.write_event(1, b"\x05").value == 5
    ue.tracefs.disable(ue.name("two"))
    assert ue.tracefs.status(whole=True).endswith("\nActive: 2\nBusy: 0\n")


@case
@variants(
    {"short": "65536\n", "most": "4294967295\n", "byte": "256\n", "sign": "2147483648\n"},
    quick=2,
)
def test_wide(ue: UserEvents, limit: str) -> None:
    """The number of events is compared with all bits of the limit."""
    ue.tracefs.write(MAXIMUM, limit)
    assert ue.open_data().register(ue.name()).errno == ""


@case
def test_many(ue: UserEvents) -> None:
    """All events count: with a limit of 257, 257 events leave no room."""
    data, words = ue.open_data(), ue.process.map()
    for number in range(257):
        word = Word(ue.process, words + 4 * number)
        assert data.register(ue.name(f"n{number}"), word=word).errno == ""
    ue.tracefs.write(MAXIMUM, "257\n")
    assert data.register(ue.name("more")).errno == "EMFILE"
    ue.tracefs.write(MAXIMUM, "258\n")
    assert data.register(ue.name("more")).index == 257


@case(level="detail", bug="enomem-for-bad-address")
def test_refused_word_counts(ue: UserEvents) -> None:
    """A registration that fails for its word has created an event, which counts."""
    ue.tracefs.write(MAXIMUM, "1\n")
    data = ue.open_data()
    errno = ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")
    assert error_of(data.register(ue.name("e"), enable_addr=0)) == errno
    assert error_of(data.register(ue.name("f"))) == "EMFILE"
    assert data.register(ue.name("e")).index == 0


@case
def test_refused_event_does_not_count(ue: UserEvents) -> None:
    """A rejected event used no room and no write index."""
    ue.tracefs.write(MAXIMUM, "1\n")
    data = ue.open_data()
    assert error_of(data.register(f"{ue.name('e')} long a")) == "EINVAL"
    assert data.register(ue.name("e")).index == 0
    assert error_of(data.register(ue.name("f"))) == "EMFILE"
    ue.tracefs.write(MAXIMUM, "2\n")
    assert data.register(ue.name("g")).index == 1


@case(level="detail", needs="multi_format persist arguments_matched", tier="full")
def test_formats_count(ue: UserEvents) -> None:
    """Each format of a name counts as an event, and a rejected one uses an id."""
    ue.tracefs.write(MAXIMUM, "2\n")
    data = ue.open_data()
    assert data.register(f"{ue.name()} u8 a", flags=MULTI_FORMAT).index == 0
    assert data.register(f"{ue.name()} u16 a", flags=MULTI_FORMAT).index == 1
    assert data.register(f"{ue.name()} u32 a", flags=MULTI_FORMAT).errno == "EMFILE"
    assert data.register(f"{ue.name()} u8 a", flags=MULTI_FORMAT).index == 0
    ue.tracefs.write(MAXIMUM, DEFAULT)
    assert data.register(f"{ue.name()} u32 a", flags=MULTI_FORMAT).index == 2
    first, second, third = sorted(map(unique_id, tracepoints(ue)))
    assert (second - first, third - first) == (1, 3)
    path = ue.tracefs.event_path(f"{ue.name()}.{third:x}", "enable", MULTI_SYSTEM)
    assert ue.tracefs.read(path).text == "0\n"


@case(needs="persist null_arguments_matched")
def test_commands_too(ue: UserEvents) -> None:
    """The limit applies to dynamic_events as well, line by line."""
    ue.tracefs.write(MAXIMUM, "1\n")
    assert ue.tracefs.command("u:one\nu:two\n").errno == "EMFILE"
    assert ue.tracefs.dynamic_events(whole=True) == "u:one\n"
    assert ue.tracefs.command("u:one\n").value == 6
    assert ue.tracefs.command("-:one\nu:two\n").value == 12
    assert ue.tracefs.command("-:two\n").value == 6


@case(facilities="kprobes")
def test_nobody_elses(ue: UserEvents) -> None:
    """The limit is for user events only: a kprobe can be created at the limit."""
    ue.tracefs.write(MAXIMUM, "0\n")
    assert ue.open_data().register(ue.name()).errno == "EMFILE"
    assert ue.tracefs.add_kprobe(ue.name("k"), "user_events_write").errno == ""
