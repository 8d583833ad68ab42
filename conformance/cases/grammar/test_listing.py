"""Event names as directory entries: what listing events/user_events returns."""

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.client.credentials import Directory
from conformance.client.tracefs import EVENTS

SPEC = "fs/tracefs/event_inode.c:eventfs_iterate; fs/readdir.c:verify_dirent_name"
DOC = "Registering: events show up in tracefs like any other event; silent about odd names"
case = surface("grammar", SPEC, DOC, level="detail", profiles="6.8..", isolation="global")


@case(spec="trace_events.c:event_create_dir", profiles="5.18..")
def test_listing(ue: UserEvents) -> None:
    """The directory of the system lists every event once, next to its own files."""
    data, word = ue.open_data(), ue.process.word()
    for bit, name in enumerate(("b", "a", "größe", "%s;[1]", "c.d")):
        data.register(f"{name} u32 a", word=word, bit=bit)
    directory = Directory(ue.process, EVENTS)
    assert directory.names() == ["%s;[1]", ".", "..", "a", "b", "c.d", "enable", "filter", "größe"]
    assert directory.names() == []


@case(needs="directories_of_any_name auto_delete", tier="full", bug="event-name-slash")
@variants(
    ("slash-within", "x/y"),
    ("empty", ""),
    ("slash", "/"),
    ("slash-first", "/x"),
    ("slash-last", "x/"),
    ("two-slashes", "x//y"),
    ("way-up", "../x"),
)
def test_listing_cut_off(ue: UserEvents, name: str) -> None:
    """A name that cannot be listed, and would hide all events registered after it, is EINVAL."""
    first, other = ue.open_data(), ue.new_process()
    first.register("before")
    refused = other.open_data().register(f"{name} u8 a").errno
    assert refused == ue.bug("event-name-slash", fixed="EINVAL", present="")
    ue.new_process().open_data().register("behind")
    if not refused:
        cut = Directory(ue.process, EVENTS)
        assert cut.names() == [".", "..", "before", "enable", "filter"]
        errno = ue.dated("listing_ends_with_einval", since="EINVAL", before="EIO")
        assert cut.next().errno == errno
    assert ue.tracefs.enabled("behind").text == "0\n"
    other.exit()
    assert "\nActive: 2\n" in ue.tracefs.status(whole=True, eventually=True)
    whole = Directory(ue.process, EVENTS)
    assert whole.names() == [".", "..", "before", "behind", "enable", "filter"]
    assert whole.next().errno == ""


@case(
    profiles="5.18..6.7",
    without="directories_of_any_name",
    bug="event-name-slash eventfs-long-name-hangs",
    isolation="fatal",
)
@spec("trace_events.c:event_create_dir; fs/tracefs/inode.c:start_creating")
@variants({"slash-within": "x/y", "empty": "", "way-up": "../x", "too-long": "y" * 256})
def test_listing_left_out(ue: UserEvents, name: str) -> None:
    """A name that cannot be listed is EINVAL, a longer one has no directory; others have theirs."""
    data, word = ue.open_data(), ue.process.word()
    data.register("before u8 a", word=word)
    errno = ue.bug("event-name-slash", fixed="" if len(name) > 255 else "EINVAL", present="")
    assert data.register(f"{name} u8 a", word=word, bit=1).errno == errno
    data.register("behind u8 a", word=word, bit=2)
    directory = Directory(ue.process, EVENTS)
    assert directory.names() == [".", "..", "before", "behind", "enable", "filter"]
    assert directory.next().errno == ""


@case(
    spec="fs/libfs.c:simple_lookup",
    profiles="5.18..",
    without="directories_of_any_name",
    tier="full",
    bug="eventfs-long-name-hangs",
    isolation="fatal",
)
def test_listing_too_long(ue: UserEvents) -> None:
    """The files of an event whose name exceeds NAME_MAX cannot be opened: ENAMETOOLONG."""
    name = "y" * 256
    data = ue.open_data()
    assert data.register(f"{name} u8 a").errno == ""
    assert ue.tracefs.enable(name).errno == "ENAMETOOLONG"
    assert ue.tracefs.enabled(name).errno == "ENAMETOOLONG"
    assert data.register(f"{name[1:]} u8 a", word=ue.process.word()).errno == ""
    assert ue.tracefs.enable(name[1:]).errno == ""


@case(needs="directories_of_any_name", tier="full", bug="event-name-slash")
@variants(
    ("enable", "enable", [".", "..", "enable", "enable", "filter"]),
    ("filter", "filter", [".", "..", "enable", "filter", "filter"]),
    ("dot", ".", [".", ".", "..", "enable", "filter"]),
    ("dots", "..", [".", "..", "..", "enable", "filter"]),
)
def test_listing_twice(ue: UserEvents, name: str, names: list[str]) -> None:
    """A name of a file of the system is listed twice, without an error; `.` and `..` are EINVAL."""
    ue.open_data().register("other")
    errno = ue.bug("event-name-slash", fixed="EINVAL" if name in (".", "..") else "", present="")
    assert ue.open_data().register(name).errno == errno
    directory = Directory(ue.process, EVENTS)
    assert directory.names() == [*([".", "..", "enable", "filter"] if errno else names), "other"]
    assert directory.next().errno == ""


@case(needs="directories_of_any_name", tier="full")
@spec("eventfs_root_lookup; fs/readdir.c:verify_dirent_name")
@variants(256, 255, 511)
def test_listing_long_names(ue: UserEvents, length: int) -> None:
    """An event directory may exceed NAME_MAX: 511 bytes can be listed and opened."""
    ue.open_data().register("x" * length)
    assert Directory(ue.process, EVENTS).names()[-1] == "x" * length
    assert ue.tracefs.enabled("x" * length).text == "0\n"
